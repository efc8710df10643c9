-- Version 2: what signs beside `secret`, while the receivers of an endpoint change from this one to the other.

ALTER TABLE webhook ADD COLUMN former_secret BLOB CHECK (former_secret IS NULL OR length(former_secret) BETWEEN 24 AND 64);

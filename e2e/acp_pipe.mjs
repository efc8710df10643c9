// What an editor starts in the place of an agent: lines on standard input and output, frames at turnd's door. ACP_URL says where.

import { createInterface } from "node:readline";

const socket = new WebSocket(process.env.ACP_URL);
const waiting = [];

socket.addEventListener("open", () => waiting.splice(0).forEach((line) => socket.send(line)));
socket.addEventListener("message", ({ data }) => process.stdout.write(`${data}\n`));
socket.addEventListener("close", ({ code, reason }) => {
  if (code !== 1000) console.error(`the door closed: ${code} ${reason}`);
  process.exit(0);
});
socket.addEventListener("error", () => {
  console.error("there is no door");
  process.exit(1);
});

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => (socket.readyState === WebSocket.OPEN ? socket.send(line) : waiting.push(line)));
lines.on("close", () => socket.close(1000));

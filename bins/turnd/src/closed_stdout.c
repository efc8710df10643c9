/* A program that is started with its stdout closed is given /dev/null there by Rust's runtime, before any line of ours, and nothing tells
 * it from one that its caller wanted: every answer would be taken, and reach nobody. So something is put there first that cannot be
 * written to, which the runtime leaves alone and `output.rs` knows. In C since Rust has no safe word for what runs before `main`.
 */

#include <fcntl.h>
#include <unistd.h>

__attribute__((constructor)) static void turnd_mark_closed_stdout(void)
{
    int null;

    if (fcntl(STDOUT_FILENO, F_GETFD) != -1)
        return;
    null = open("/dev/null", O_RDONLY);
    if (null != -1 && null != STDOUT_FILENO) {
        /* Stdin was closed, too; that the runtime sees to. */
        dup2(null, STDOUT_FILENO);
        close(null);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * silent.c: who is at the other end of a connection and says nothing.
 *   silent listen         prints a port of this host, takes whoever comes, and never answers
 *   silent connect FILE   waits for FILE, `HOST PORT`, and connects there twice
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int port_in(const char *file)
{
    int port = 0;
    for (FILE *f; !port; usleep(1000))
        if ((f = fopen(file, "r"))) {
            if (fscanf(f, "%*s %d", &port) != 1)
                port = 0;
            fclose(f);
        }
    return port;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    if (argc == 3) {
        at.sin_port = htons((unsigned short)port_in(argv[2]));
        for (int i = 0; i < 2; i++)
            if (connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&at, n) != 0)
                return 1;
    } else {
        int door = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(door, (struct sockaddr *)&at, n) != 0 || listen(door, 9) != 0 ||
            getsockname(door, (struct sockaddr *)&at, &n) != 0)
            return 1;
        printf("%d\n", ntohs(at.sin_port));
        fflush(stdout);
        for (;;)
            accept(door, NULL, NULL);
    }
    pause();
    return 0;
}

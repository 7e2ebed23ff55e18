/* SPDX-License-Identifier: Apache-2.0
 *
 * virt.c: a riscv64 without a system, as qemu-system-riscv64 -M virt -bios none has it: its serial line, and the device that
 * ends it.  Instructions are those of qemu -icount shift=0.
 */
#include <stddef.h>
#include "board.h"

extern unsigned char bss_begin[], bss_end[];
void *memset(void *to, int byte, size_t n);
void start(void);

void board_say(const char *text)
{
    for (; *text; text++)
        *(volatile unsigned char *)0x10000000 = (unsigned char)*text;
}

uint64_t board_instructions(void)
{
    uint64_t n;
    __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop" : "=r"(n));
    return n;
}

void start(void)
{
    memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
    int status = board_main(STEPS);
    *(volatile uint32_t *)0x100000 = status ? 0x13333 : 0x5555;
    for (;;)
        ;
}

/* The stack, and the floating-point unit where there is one: mstatus.FS. */
__asm__(".section .entry,\"ax\"\n.option arch, +zicsr\n.globl entry\nentry:\n"
        "la sp, stack_end\nli t0, 0x2000\ncsrs mstatus, t0\ncall start\n");

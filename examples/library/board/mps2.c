/* SPDX-License-Identifier: Apache-2.0
 *
 * mps2.c: a Cortex-M4F without a system, as qemu-system-arm -M mps2-an386 has it.  Text goes to the debugger (semihosting).
 * Instructions are those of qemu -icount shift=0, where one takes a nanosecond: SysTick counts 25 MHz.
 */
#include <stddef.h>
#include "board.h"

extern unsigned char bss_begin[], bss_end[], stack_end[];
void *memset(void *to, int byte, size_t n);

static int semihost(int what, uintptr_t with)
{
    register int r0 __asm__("r0") = what;
    register uintptr_t r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void board_say(const char *text)
{
    semihost(0x04, (uintptr_t)text);            /* SYS_WRITE0 */
}

#define REGISTER(at) (*(volatile uint32_t *)(at))
static uint32_t turns;                          /* of the counter, of 2^24 */

static void tick(void)
{
    turns++;
}

uint64_t board_instructions(void)
{
    uint32_t before, at;
    do
        before = turns, at = 0xffffff - REGISTER(0xe000e018);
    while (before != turns);
    return (((uint64_t)before << 24) + at + 1) * 40;
}

static _Noreturn void end(int status)
{
    semihost(0x18, status ? 0x20023 : 0x20026);         /* SYS_EXIT: a fault; as it should be */
    for (;;)
        ;
}

static void fault(void)
{
    board_say("a fault of the processor\n");
    end(1);
}

static _Noreturn void reset(void)
{
    memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
    REGISTER(0xe000ed88) |= 0xf << 20;          /* the floating-point unit */
    __asm__ volatile("dsb\nisb");
    REGISTER(0xe000e014) = 0xffffff;            /* SysTick: reload, then on, with its interrupt */
    REGISTER(0xe000e018) = 0;
    REGISTER(0xe000e010) = 7;
    end(board_main(STEPS));
}

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    stack_end, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault, 0, 0, 0, 0,
    (void *)fault, (void *)fault, 0, (void *)fault, (void *)tick
};

/* SPDX-License-Identifier: Apache-2.0
 *
 * moves.h: the moves of the search by name.  bench/ablate.sh builds a copy with another moves.h, in which they can be switched
 * off one by one, to see what each earns.
 */
#ifndef MOVES_H
#define MOVES_H
#define move_is_on(name) true
#endif

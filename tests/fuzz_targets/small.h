/* SPDX-License-Identifier: Apache-2.0
 *
 * small.h: a model with which to read what needs one.
 */
#ifndef SMALL_H
#define SMALL_H

static const char small_yaml[] =
    "dpgen: 1\n"
    "model:\n"
    "  dims: {D: 4, C: 3}\n"
    "  inputs: {x: {shape: [B, D], dtype: f32}, labels: {shape: [B], dtype: i32, range: [0, C]}}\n"
    "  graph:\n"
    "    - {op: Linear, name: fc1, in: x, out: D, as: h}\n"
    "    - {op: Relu, name: act}\n"
    "    - {op: Linear, name: fc2, out: C}\n"
    "    - {op: SoftmaxCrossEntropy, targets: labels, as: loss}\n"
    "  loss: loss\n"
    "train: {batch: {global: 4, micro: 2}, steps: 2, optimizer: {type: sgd, lr: 0.5}}\n"
    "data: {train: {format: npy, arrays: {x: x.npy, labels: l.npy}}}\n"
    "devices: [{name: cpu, kind: cpu, count: 2, memory: 1MiB, threads: 1, kernels: portable}]\n"
    "plan: {stages: 2, schedule: 1f1b, recompute: none}\n";
#endif

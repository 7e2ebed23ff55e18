# SPDX-License-Identifier: Apache-2.0
#
# A case of tests/oracle.sh is a line of words: those of a model, then those of a plan.
#   awk -f oracle.awk -v seed=N            draws one and prints its words
#   awk -f oracle.awk -v words="..."       prints the model file; behind a line `---` the options of dpgen, one a line
# Options that the interpreter takes too begin with `=`.
# Every word can be left out, or the case is none any more: so a case that fails is made smaller word by word.
function draw(n) { return int(rand() * n) }
function pick(list,    w, n) { n = split(list, w, " "); return w[draw(n) + 1] }
function add(word) { if (word != "-") all = all (all == "" ? "" : " ") word }
function drawn(    i, n, overlap, team, groups, stages) {
    srand(seed)
    add("D=" pick("8 16 16 32"))
    add("T=" pick("4 6 8"))
    add("B=" pick("1 2"))
    groups = pick("1 1 2 4")
    overlap = draw(8) == 0
    add("M=" (groups > 1 || overlap ? pick("4 8") : pick("2 4 8 8")))
    n = 2 + draw(5)
    for (i = 0; i < n; i++)
        add(pick("ln rms lin lin mlp mlp attn attn llama gelu relu silu drop keep keep twice scale lstm moe conv"))
    add(pick(overlap ? "- lxe" : "- - tied lxe"))
    add(pick("- - clip clip"))
    add(pick("- - - bf16"))
    add(pick("- - - sgd nesterov freeze groups nf4 int8"))
    team = pick("1 1 1 2 2 4")
    if (team > 1) { add("tensor=" team); add("blocks=" pick(team " 4 8")) } else add(pick("- - - blocks=2"))
    stages = pick("1 2 2 3 4")
    add("stages=" stages)
    if (overlap) add("schedule=" pick("2bw vertical"))
    else add("schedule=" pick("gpipe 1f1b 1f1b-split 2bp zb-h1 zb-h2 zb* optimal interleaved interleaved-zb gis breadth-first \
        1f1b-v zb-v v-half v-min dualpipe-v hanayo " (stages % 2 ? "1f1b" : "chimera")))
    if (groups > 1) add("groups=" groups)
    if (groups > 1) add(pick("- replicas=2"))
    add(pick(team > 1 ? "-" : "- - shard"))
    add(pick("- - recompute=full"))
    add(pick("- - - away"))
    add(pick("- - fuse=none"))
    add("seed=" (1 + draw(1000)))
    return all
}
function line(text) { print "    - {" text "}" }
function option(text) { options = options text "\n" }
function has(word) { return index(" " words " ", " " word " ") }
function one(w, i,    k) {
    if (w == "ln") line("op: LayerNorm, name: ln" i)
    else if (w == "rms") line("op: RMSNorm, name: rms" i)
    else if (w == "lin") line("op: Linear, name: lin" i ", out: D")
    else if (w == "gelu" || w == "relu" || w == "silu") line("op: " toupper(substr(w, 1, 1)) substr(w, 2) ", name: " w i)
    else if (w == "drop") line("op: Dropout, name: drop" i ", p: 0.1")
    else if (w == "scale") line("op: Scale, name: scale" i ", factor: 0.5")
    else if (w == "keep") { line("op: Add, name: add" i ", in: [_, r]"); return 1 }
    else if (w == "twice") { line("op: Add, name: both" i ", in: [_, _]"); return 1 }
    else if (w == "mlp") {
        line("op: Linear, name: up" i ", out: 4*D"); line("op: Gelu, name: act" i); line("op: Linear, name: down" i ", out: D")
    } else if (w == "attn") {
        line("op: Linear, name: qkv" i ", out: 3*D")
        line("op: Attention, name: att" i ", heads: 4, causal: true, packed: qkv")
        line("op: Linear, name: o" i ", out: D")
    } else if (w == "llama") {
        line("op: RMSNorm, name: n" i ", as: n" i)
        line("op: Linear, name: q" i ", in: n" i ", out: D, bias: false, as: q" i)
        line("op: Linear, name: k" i ", in: n" i ", out: D/2, bias: false, as: k" i)
        line("op: Linear, name: v" i ", in: n" i ", out: D/2, bias: false, as: v" i)
        line("op: Attention, name: att" i ", in: [q" i ", k" i ", v" i "], heads: 4, kv_heads: 2, causal: true, dropout: 0.1")
        line("op: Linear, name: o" i ", out: D, bias: false")
        line("op: Add, name: add" i ", in: [_, n" i "]")
    } else if (w == "lstm") line("op: LSTM, name: lstm" i ", hidden: D")
    else if (w == "moe") {
        line("op: RMSNorm, name: m" i ", as: m" i)
        line("op: Linear, name: gate" i ", in: m" i ", out: 4, bias: false")
        line("op: Route, name: route" i ", top: 2, normalize: true, as: [share" i ", expert" i ", slot" i ", offset" i "]")
        line("op: Dispatch, in: [m" i ", slot" i "]")
        line("op: GroupedLinear, name: up" i ", in: [_, offset" i "], experts: 4, out: 2*D")
        line("op: Silu, name: act" i)
        line("op: GroupedLinear, name: down" i ", in: [_, offset" i "], experts: 4, out: D")
        line("op: Combine, in: [_, share" i ", slot" i "]")
    } else if (w == "conv") {
        line("op: Reshape, name: image" i ", shape: [B, T, 4, D/4]")
        line("op: Conv, name: conv" i ", out: D/4, kernel: 3, pad: 1")
        line("op: Relu, name: act" i)
        line("op: Reshape, name: row" i ", shape: [B, T, D]")
    } else return 0
    return 1
}
function written(    w, n, i, k, v, D, T, B, M, O) {
    D = 8; T = 4; B = 1; M = 1; O = "type: adamw, lr: 3e-3, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.1"
    n = split(words, w, " ")
    for (i = 1; i <= n; i++) {
        k = w[i]; v = ""
        if (k ~ /=/) { v = k; sub(/^[^=]*=/, "", v); sub(/=.*/, "", k) }
        if (k == "D") D = v; else if (k == "T") T = v; else if (k == "B") B = v; else if (k == "M") M = v
        else if (k == "sgd") O = "type: sgd, lr: 1e-2, momentum: 0.9"
        else if (k == "nesterov") O = "type: sgd, lr: 1e-2, momentum: 0.9, nesterov: true"
        else if (k == "freeze") option("=--set\n=train.freeze=[wte.*]")
        else if (k == "nf4" || k == "int8") option("=--set\n=train.freeze=['*.weight']\n=--set\n=quantize={type: " k "}")
        else if (k == "bf16") option("=--set\n=train.precision.compute=bf16")
        else if (k == "blocks") option("=--set\n=train.blocks=" v)
        else if (k == "groups" && v) option("=--set\n=train.batch.groups=" v)
        else if (k == "groups") O = O ", groups: [{match: \"*bias\", lr: x0.5}]"
        else if (k == "seed") option("=--set\n=train.seed=" v)
        else if (k == "schedule" && v ~ /2bw|vertical/) option("=--set\n=plan.schedule=" v)
        else if (k == "schedule") \
            option("--schedule\n" v (v ~ /inter|gis|breadth|-v|v-|hanayo/ ? "\n--set\nplan.chunks=2" : ""))
        else if (k == "stages") option((has("schedule=vertical") ? "=--set\n=plan.stages=" : "--set\nplan.stages=") v)
        else if (k == "tensor") option("--set\nplan.tensor=" v)
        else if (k == "replicas") option("--replicas\n" v)
        else if (k == "shard") option("--set\ntrain.shard=optimizer")
        else if (k == "recompute") option("--recompute\n" v)
        else if (k == "away") option("--offload\n['*']")
        else if (k == "fuse") option("--fuse\n" v)
    }
    print "dpgen: 1\nmodel:\n  name: oracle\n  dims: {V: 256, T: " T ", D: " D "}\n  inputs:"
    print "    tokens:  {shape: [B, T], dtype: i32, range: [0, V]}\n    targets: {shape: [B, T], dtype: i32, range: [0, V]}"
    print "  init:\n    weight: {normal: [0, 0.1]}\n  graph:"
    line("op: Embedding, name: wte, in: tokens, rows: V, out: D, as: r")
    if (has("nf4") || has("int8")) line("op: Linear, name: few, out: D")
    for (i = 1; i <= n; i++) one(w[i], i)
    k = has("tied") ? ", tie: wte" : ""
    if (has("lxe")) line("op: LinearCrossEntropy, name: head, out: V, bias: false, targets: targets, as: loss" k)
    else {
        line("op: Linear, name: head, out: V, bias: false" k)
        line("op: SoftmaxCrossEntropy, targets: targets, as: loss")
    }
    print "  loss: loss\ntrain:\n  batch: {global: " B * M ", micro: " B "}\n  steps: 3\n  optimizer: {" O "}"
    print has("clip") ? "  clip_norm: 0.5" (words ~ /schedule=(2bw|vertical)/ ? "\n  clip_scope: parameter" : "") : ""
    print "data:\n  train: {format: bytes, files: \"*\", tokens: tokens, next: targets}"
    print "devices:\n  - {name: cpu, kind: cpu, count: 32, memory: 64MiB, threads: 1, kernels: portable}"
    print "plan: {stages: 1, schedule: gpipe, recompute: none}\n---"
    printf "%s", options
}
BEGIN { if (words == "") print drawn(); else written() }

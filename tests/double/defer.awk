# SPDX-License-Identifier: Apache-2.0
#
# From the prototypes of rt.h: kernels of rt/op, which run on processors, as work for the streams of the double.
#   awk -v part=names -f defer.awk rt/rt.h     the new names of the kernels, for objcopy
#   awk -v part=calls -f defer.awk rt/rt.h     each call by its own name, queued on the stage's stream; no
#                                              handle is prepared
# With them a job for GPUs gives the bits of the same job for processors, so that whatever differs is the runtime's, the plan's
# or the streams' doing.

/---- kernels:/ { on = 1 }
/kernels_start/ { on = 0 }
/^void (group_fold|version_copy|norm_gather|fill_zero)\(/ || (on && /^void /) {
    name = $2
    sub(/\(.*/, "", name)
    if (part == "names") {
        print name " cpu_" name
        next
    }
    args = $0
    sub(/^[^(]*\(Stage \*st, /, "", args)
    sub(/\);$/, "", args)
    n = split(args, arg, ", ")
    fields = ""; pass = ""; fill = ""
    for (i = 1; i <= n; i++) {
        word = arg[i]
        sub(/.*[ *]/, "", word)
        fields = fields " " arg[i] ";"
        pass = pass ", work_->" word
        fill = fill ", " word
    }
    print "struct work_" name " { Stage *st;" fields " };"
    print "void cpu_" name "(Stage *st, " args ");"
    print "static void run_" name "(void *at)\n{\n    struct work_" name " *work_ = at;"
    print "    cpu_" name "(work_->st" pass ");\n}"
    print "void " name "(Stage *st, " args ")\n{"
    print "    struct work_" name " work_ = {st" fill "};"
    print "    double_enqueue(stream_of(st), \"" name "\", run_" name ", &work_, sizeof work_);\n}\n"
}
part == "calls" && /^void open_.*;$/ { sub(/;$/, " {}"); print }
BEGIN {
    if (part == "calls")
        print "#include \"cuda/device.h\"\n#include \"double.h\"\n\n#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n"
}

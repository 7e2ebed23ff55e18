# SPDX-License-Identifier: Apache-2.0
# A job from Python: dpgen examples/library/xor.yaml --library -o xor && make -C xor libxor.so     (or with --stages 2)
#                    python3 examples/library/xor.py xor/libxor.so
import ctypes as c, sys

class Array(c.Structure):
    _fields_ = [("at", c.c_void_p), ("n", c.c_size_t), ("type", c.c_int)]
class Result(c.Structure):
    _fields_ = [("step", c.c_int64), ("loss", c.c_double), ("norm", c.c_double), ("rate", c.c_double)]

xor = c.CDLL(sys.argv[1])
xor.xor_open.restype, xor.xor_why.restype = c.c_void_p, c.c_char_p
job = c.c_void_p(xor.xor_open(None, c.c_size_t(0), None))
bits, label = (c.c_float * 8)(0, 0, 0, 1, 1, 0, 1, 1), (c.c_int32 * 4)(0, 1, 1, 0)
data = (Array * 2)(Array(c.addressof(bits), 8, 1), Array(c.addressof(label), 4, 2))
got, scores, sha = Result(), (c.c_float * 8)(), c.create_string_buffer(65)
for step in range(int(sys.argv[2]) if len(sys.argv) > 2 else 400):
    if xor.xor_step(job, data, c.byref(got)):
        sys.exit(xor.xor_why(job).decode())
xor.xor_forward(job, data, b"scores", scores, c.c_size_t(8))
xor.xor_hash(job, sha)
print([int(scores[2 * i + 1] > scores[2 * i]) for i in range(4)], "loss", got.loss)
print("sha256", sha.value.decode())
xor.xor_close(job)

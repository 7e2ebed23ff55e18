// SPDX-License-Identifier: Apache-2.0
//
// digits.cc: a job as an object of C++: its arena is its own, and what fails is an exception.
//
// With --stages 2 its second layer is in a thread of its own: nothing here changes, and c++ wants -pthread.
//
//     dpgen examples/library/digits.yaml --library --stages 2 -o digits && make -C digits
//     c++ -I. -pthread -o reader examples/library/digits.cc -x c examples/library/digits.c -x none digits/libdigits.a
//     ./reader
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>
#include "digits/digits.h"

extern "C" {
#include "digits.h"
}

namespace {

class Digits {
    char why[DIGITS_TEXT] = "";
    std::unique_ptr<digits_job, decltype(&digits_close)> job;

    void check(int status) const
    {
        if (status)
            throw std::runtime_error(digits_why(job.get()));
    }

public:
    Digits() : job(digits_open(nullptr, 0, why), digits_close)
    {
        if (!job)
            throw std::runtime_error(why);
    }

    double step(const std::vector<float> &points, const std::vector<int32_t> &label)
    {
        const digits_array in[DIGITS_INPUTS] = {{points.data(), points.size(), DIGITS_F32},
                                                {label.data(), label.size(), DIGITS_I32}};
        digits_result r;
        check(digits_step(job.get(), in, &r));
        return r.loss;
    }

    int read(const std::vector<float> &points)
    {
        const digits_array in[DIGITS_INPUTS] = {{points.data(), points.size(), DIGITS_F32}, {nullptr, 0, 0}};
        float score[10];
        check(digits_forward(job.get(), in, "scores", score, 10));
        int best = 0;
        for (int i = 1; i < 10; i++)
            best = score[i] > score[best] ? i : best;
        return best;
    }
};

}

int main()
try {
    Digits digits;
    uint32_t drawn = 0;
    double loss = 0;
    for (int step = 0; step < 150; step++) {
        std::vector<float> points(DIGITS_STEP_SAMPLES * DIGIT_POINTS);
        std::vector<int32_t> label(DIGITS_STEP_SAMPLES);
        for (int i = 0; i < DIGITS_STEP_SAMPLES; i++)
            label[i] = digit_draw(&points[i * DIGIT_POINTS], drawn++);
        loss = digits.step(points, label);
    }
    int right = 0;
    for (int i = 0; i < 100; i++) {
        std::vector<float> points(DIGIT_POINTS);
        int32_t label = digit_draw(points.data(), drawn++);
        right += digits.read(points) == label;
    }
    try {
        digits.step({0, 1}, {3});
    } catch (const std::runtime_error &e) {
        std::printf("refused: %s\n", e.what());
    }
    std::printf("loss %.4f, %d of 100 read\n", loss, right);
    return right < 90;
} catch (const std::exception &e) {
    std::fprintf(stderr, "digits: %s\n", e.what());
    return 1;
}

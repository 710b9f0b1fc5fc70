// SPDX-License-Identifier: Apache-2.0
// Recognises the answers to a trial's queries. A right one gets the tag that a test frame of the query's number would
// have, so that the RX statistics count it like one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dns/questions.hpp"
#include "frame/tag.hpp"
#include "trial/query_log.hpp"
#include "trial/query_times.hpp"
#include "trial/trial.hpp"

namespace dutperf {

class AnswerWatch {
public:
    // `times`: nullptr if they are not kept.
    AnswerWatch(const dns::TrialQuestions& questions, const QueryLog& log, QueryTimes* times, TrialMark trial,
                std::size_t path, bool accepts_unfinished)
        : questions_(questions),
          log_(log),
          times_(times),
          trial_(trial),
          path_(path),
          mark_(mark_of_path(path)),
          accepts_unfinished_(accepts_unfinished) {}

    struct Answer {
        bool intact = false, unfinished = false;
        std::optional<Tag> right;
    };
    // Nothing for a frame that is no answer. Wrong answers are counted here.
    std::optional<Answer> take(dns::Bytes frame, Ticks arrival) {
        const auto datagram = dns::read_datagram(frame);
        if (!datagram || datagram->between.source_port != questions_.destination_port ||
            datagram->between.destination != ip_of(questions_.source))
            return std::nullopt;
        Answer answer{.intact = is_intact(datagram->checksum, accepts_unfinished_),
                      .unfinished = accepts_unfinished_ && datagram->checksum == dns::Checksum::unfinished,
                      .right = std::nullopt};
        if (answer.intact) answer.right = tag_if_right(*datagram, arrival);
        return answer;
    }

    [[nodiscard]] std::size_t path() const { return path_; }
    [[nodiscard]] const WrongCounts& wrong() const { return wrong_; }

private:
    std::optional<Tag> tag_if_right(const dns::Datagram& datagram, Ticks arrival) {
        const dns::Verdict verdict = check_answer(questions_, datagram.between.destination_port, datagram.payload);
        const bool is_malformed = verdict.wrong == dns::Wrong::malformed;
        const auto stamp = log_.stamp_of(verdict.number);
        // a resolver takes no answer from an address that it did not ask (RFC 5452 9.1)
        if (!is_malformed && (!stamp || datagram.between.source != ip_of(questions_.destination)))
            return count(dns::Wrong::unexpected);
        if (times_ != nullptr && !is_malformed) [[unlikely]]
            times_->note_answer(verdict.number, arrival, verdict.wrong);
        if (verdict.wrong) return count(*verdict.wrong);
        return Tag{
            .trial = trial_, .stream = mark_.stream, .pair = mark_.pair, .sequence = verdict.number, .stamp = *stamp};
    }
    std::nullopt_t count(dns::Wrong kind) {
        ++wrong_[static_cast<std::size_t>(kind)];
        return std::nullopt;
    }

    const dns::TrialQuestions& questions_;
    const QueryLog& log_;
    QueryTimes* times_;
    TrialMark trial_;
    std::size_t path_;
    PathMark mark_;
    bool accepts_unfinished_;
    WrongCounts wrong_{};
};

}  // namespace dutperf

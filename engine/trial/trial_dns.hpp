// SPDX-License-Identifier: Apache-2.0
// What a trial asks a DNS64 server, and the name server that the DUT asks (RFC 8219 section 9).
#pragma once

#include <memory>
#include <optional>

#include "dns/questions.hpp"
#include "trial/answer_watch.hpp"
#include "trial/collect.hpp"
#include "trial/question_source.hpp"

namespace dutperf {

// The paths with the ends that they have in the trial: answers come back to the port that asks.
TestBed with_answers(TestBed bed, const TrialSpec& spec);

class TrialDns {
public:
    TrialDns(const TestBed& bed, const TrialSpec& spec, TrialParts& parts) : bed_(bed), spec_(spec), parts_(parts) {}

    // Of the one path that asks. Throws Error.
    QuestionParts parts(Direction direction, const NicSending& nic);
    // Of the receivers of a port; none: no answers arrive there. After parts().
    [[nodiscard]] std::optional<AnswerWatch> answers_into(std::size_t port) const;
    // Makes the name server, at the port. Throws Error. After parts().
    void make_server(std::size_t port);

private:
    [[nodiscard]] std::unique_ptr<QueryTimes> make_query_times(Direction direction) const;

    const TestBed& bed_;
    const TrialSpec& spec_;
    TrialParts& parts_;
    dns::TrialQuestions questions_;
    std::unique_ptr<dns::QueryFrame> query_frame_;
    std::unique_ptr<ImagePool> query_pool_;
    std::unique_ptr<QueryLog> query_log_;
};

}  // namespace dutperf

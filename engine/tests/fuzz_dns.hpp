// SPDX-License-Identifier: Apache-2.0
// DNS messages of any shape for whoever reads them: the client, the name server, and the reference DUT's resolver. An
// answer can be read, and is that to its query.
#pragma once

#include "dns/name_server.hpp"
#include "dns/questions.hpp"
#include "refdut/datagram.hpp"
#include "refdut/prefix.hpp"
#include "refdut/resolver.hpp"
#include "tests/fuzz_mutation.hpp"

namespace dutperf {

class DnsFuzz : private ResolverOutput {
public:
    explicit DnsFuzz(Mutation& mutation) : mutation_(mutation) {
        const dns::QueryFrame query(questions_, {}, {});
        FuzzBytes frame(query.data(), query.data() + query.length());
        for (const std::uint64_t k : {0U, 1U, 7U}) {
            query.write(k, frame.data());
            add_messages(frame);
        }
    }

    void turn() {
        const FuzzBytes message = mutation_.changed(messages_);
        ++count_;
        dns::check_answer(questions_, static_cast<std::uint16_t>(questions_.first_port + mutation_.below(4)), message);
        ask_server(message);
        ask_resolver(message);
        read_frame(mutation_.changed(frames_));
    }

    [[nodiscard]] std::uint64_t messages() const { return count_; }
    [[nodiscard]] std::uint64_t answered() const { return answered_; }
    [[nodiscard]] std::uint64_t resolved() const { return resolver_.counts().synthesised; }

private:
    static dns::TrialQuestions questions() {
        dns::TrialQuestions some;
        some.zone = *dns::parse_zone("fuzz.test");
        some.aaaa = {.n = 2, .m = 1};
        some.ports = 4;
        some.count = 100;
        return some;
    }
    static Dns64Properties properties() {
        Dns64Properties some{.cache_names = 2, .pending = 8};
        some.wrong_every.fill(50);
        return some;
    }

    // A query, and the server's answer to it.
    void add_messages(const FuzzBytes& query) {
        const auto datagram = dns::read_datagram(query);
        require(datagram.has_value(), "a query that is no datagram", query);
        messages_.emplace_back(datagram->payload.begin(), datagram->payload.end());
        FuzzBytes answer(dns::NameServer::kMostAnswerSize);
        answer.resize(server_.answer(query, *datagram, answer));
        messages_.emplace_back(answer.begin() + static_cast<std::ptrdiff_t>(datagram_payload_at(true)), answer.end());
        frames_.push_back(query);
        frames_.push_back(answer);
    }

    void ask_server(const FuzzBytes& message) {
        const FuzzBytes ethernet(ethernet::kSize);
        const dns::Datagram datagram{.between = {.source = {.is_ipv6 = true}, .destination = {.is_ipv6 = true}},
                                     .checksum = dns::Checksum::good,
                                     .payload = message};
        FuzzBytes answer(dns::NameServer::kMostAnswerSize);
        answer.resize(server_.answer(ethernet, datagram, answer));
        if (answer.empty()) return;
        ++answered_;
        const auto back = dns::read_datagram(answer);
        require(back && back->checksum == dns::Checksum::good, "an answer that is no datagram", message);
        require_answer(message, back->payload);
    }

    static void require_answer(const FuzzBytes& query, dns::Bytes answer) {
        const auto header = dns::read_header(answer);
        require(header && header->is(dns::header::kResponse) && header->id == load_be16(query.data()),
                "no answer to the query", query);
        require(header->counts[0] == 0 || dns::read_message(answer), "an answer that cannot be read", query);
    }

    // What the resolver asks is answered by the name server; a part of the answers is changed.
    void ask_resolver(const FuzzBytes& message) {
        resolver_.query(now_, {.address = {}, .port = 1, .arrived = now_}, message);
        while (!asked_.empty()) {
            const auto [port, query] = asked_.back();
            asked_.pop_back();
            FuzzBytes answer(query.size() + dns::NameServer::kMostAnswerSize);
            std::ranges::copy(query, answer.begin());
            answer.resize(server_.answer_message(query, answer));
            require(!answer.empty(), "a query of the resolver that is none", query);
            resolver_.response(now_, port, mutation_.below(4) == 0 ? mutation_.changed({answer}) : answer);
        }
        resolver_.expire(now_ += 1000);
    }
    void answer(Ticks /*now*/, const DnsClient& /*client*/, dns::Bytes message) override {
        require(dns::read_header(message).has_value(), "no answer", {message.begin(), message.end()});
    }
    void ask(Ticks /*now*/, std::uint16_t port, dns::Bytes message) override {
        asked_.emplace_back(port, FuzzBytes(message.begin(), message.end()));
    }

    // Frames with datagrams of any shape.
    void read_frame(FuzzBytes frame) {
        FuzzBytes answer(dns::NameServer::kMostAnswerSize);
        if (const auto datagram = server_.datagram_in(frame)) server_.answer(frame, *datagram, answer);
        if (frame.size() < kIpv6Layout.transport_at()) return;
        const Packet packet{.at = frame.data(), .length = frame.size()};
        if (read_datagram(packet)) has_right_checksum(packet);
    }

    Mutation& mutation_;
    dns::TrialQuestions questions_ = questions();
    dns::NameServer server_{{.zone = questions_.zone, .ipv6 = {Ipv6{}}}};
    std::vector<FuzzBytes> messages_, frames_;
    ResolverOutput& output_ = *this;
    Resolver resolver_{*parse_prefix6("64:ff9b::/96"), properties(), 1'000'000, output_};
    Ticks now_ = 1;
    std::vector<std::pair<std::uint16_t, FuzzBytes>> asked_;  // by the resolver
    std::uint64_t count_ = 0, answered_ = 0;
};

}  // namespace dutperf

// SPDX-License-Identifier: Apache-2.0
// The DNS64 of the reference DUT in virtual time: clients' queries in, messages to the server and answers out.
#include "refdut/resolver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "frame/random_bits.hpp"
#include "refdut/prefix.hpp"

namespace dutperf {
namespace {

constexpr std::uint64_t kClock = 1'000'000'000;  // ticks are ns
constexpr Ticks kS = kClock;
constexpr std::uint32_t kTtlS = 300, kSoaTtlS = 60;

using Message = std::vector<std::uint8_t>;

Message wire(const std::string& text) {
    Message name;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('.', at), text.size());
        name.push_back(static_cast<std::uint8_t>(end - at));
        name.insert(name.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
                    text.begin() + static_cast<std::ptrdiff_t>(end));
        at = end + 1;
    }
    name.push_back(0);
    return name;
}

Message query_for(const std::string& name, std::uint16_t id = 7, std::uint16_t type = dns::type::kAaaa) {
    Message message(512);
    const Message bytes = wire(name);
    message.resize(dns::write_query({.id = id, .name = bytes, .type = type}, message));
    return message;
}

// What a message of the resolver says.
struct Said {
    explicit Said(const Message& message) : bytes(message) {
        const auto read = dns::read_message(message, [this](const dns::Record& record) {
            if (record.section != dns::Section::answer || record.type != dns::type::kAaaa) return;
            addresses.push_back(to_string(read_address<Ipv6>(record.data.data())));
            ttl_s = record.ttl_s;
        });
        is_whole = read.has_value();
        if (!read) return;
        id = read->header.id;
        flags = read->header.flags;
        rcode = read->rcode();
        type = read->question.type;
        name = Message(read->question.name.begin(), read->question.name.end());
        has_edns = read->edns.has_value();
    }

    Message bytes;
    bool is_whole = false, has_edns = false;
    std::uint16_t id = 0, flags = 0, type = 0;
    dns::Rcode rcode{};
    Message name;
    std::vector<std::string> addresses;
    std::uint32_t ttl_s = 0;
};

struct Bench : ResolverOutput {
    explicit Bench(const Dns64Properties& properties = {})
        : resolver(*parse_prefix6("2001:2:0:6464::/96"), properties, kClock, *this) {}

    void answer(Ticks, const DnsClient& client, dns::Bytes message) override {
        answers.emplace_back(Message(message.begin(), message.end()));
        clients.push_back(client);
    }
    void ask(Ticks, std::uint16_t port, dns::Bytes message) override {
        asked.emplace_back(Message(message.begin(), message.end()));
        ports.push_back(port);
    }

    void query(const Message& message, std::uint16_t port = 5000) {
        resolver.query(now, {.address = {1}, .port = port, .arrived = now}, message);
    }
    // Answers the last message to the server.
    void respond(const dns::Reply& reply) { respond(asked.size() - 1, reply); }
    void respond(std::size_t number, const dns::Reply& reply) {
        Message message = asked[number].bytes;
        message.resize(512);
        message.resize(dns::write_reply(message, *dns::read_question(message), reply));
        resolver.response(now, ports[number], message);
    }
    // The server: nothing for AAAA, this address for A.
    void respond_as_server(const Ipv4& address = {198, 18, 0, 7}) {
        const std::size_t first_label = asked.back().name[0];
        respond({.ttl_s = kSoaTtlS, .soa = true, .zone_at = 1 + first_label});
        respond({.ttl_s = kTtlS, .a = &address});
    }
    // From the query to the answer.
    Said resolve(const std::string& name, std::uint16_t id = 7) {
        const std::size_t before = asked.size();
        query(query_for(name, id));
        if (asked.size() != before) respond_as_server();
        return answers.back();
    }

    Ticks now = kS;
    Resolver resolver;
    std::vector<Said> answers, asked;
    std::vector<DnsClient> clients;
    std::vector<std::uint16_t> ports;
};

using Addresses = std::vector<std::string>;

TEST(Resolver, SynthesisesByTwoQueriesToTheServer) {
    Bench run;
    run.query(query_for("A.dutperf.test", 0x1234), 4711);
    ASSERT_EQ(run.asked.size(), 1U);
    EXPECT_EQ(run.asked[0].type, dns::type::kAaaa);
    EXPECT_EQ(run.asked[0].flags, 0U) << "the server is authoritative";
    EXPECT_TRUE(run.asked[0].has_edns);
    EXPECT_TRUE(run.answers.empty());
    run.respond_as_server();
    ASSERT_EQ(run.asked.size(), 2U);
    EXPECT_EQ(run.asked[1].type, dns::type::kA);
    EXPECT_EQ(run.asked[1].name, wire("A.dutperf.test"));
    EXPECT_NE(run.asked[1].id, run.asked[0].id);

    ASSERT_EQ(run.answers.size(), 1U);
    const Said& answer = run.answers[0];
    EXPECT_EQ(answer.id, 0x1234U);
    EXPECT_EQ(answer.flags, 0x8180U) << "QR, RD, RA";
    EXPECT_EQ(answer.name, wire("A.dutperf.test")) << "letters keep their case";
    EXPECT_EQ(answer.addresses, Addresses{"2001:2:0:6464::c612:7"});
    EXPECT_EQ(answer.ttl_s, kSoaTtlS) << "RFC 6147 5.1.7: the lesser one";
    EXPECT_TRUE(answer.has_edns);
    EXPECT_EQ(run.clients[0].port, 4711U);
    EXPECT_EQ(run.clients[0].arrived, kS);
    EXPECT_EQ(run.resolver.pending(), 0U);
    EXPECT_EQ(run.resolver.counts().synthesised, 1U);
}

TEST(Resolver, ReturnsAnExistingAaaaUnchanged) {
    Bench run;
    run.query(query_for("b.dutperf.test"));
    const std::array addresses{*parse_ipv6("2001:2:0:d64::1"), *parse_ipv6("2001:2:0:d64::2")};
    run.respond({.ttl_s = kTtlS, .aaaa = addresses});
    ASSERT_EQ(run.answers.size(), 1U);
    EXPECT_EQ(run.answers[0].addresses, (Addresses{"2001:2:0:d64::1", "2001:2:0:d64::2"}));
    EXPECT_EQ(run.answers[0].ttl_s, kTtlS);
    EXPECT_EQ(run.asked.size(), 1U);
    EXPECT_EQ(run.resolver.counts().existing, 1U);
}

struct Failure {
    const char* name;
    dns::Rcode aaaa;
    std::optional<dns::Rcode> a;  // nothing: it is not asked
    dns::Rcode answer;
};

TEST(Resolver, TreatsErrorsOfTheServerByRfc6147) {
    using enum dns::Rcode;
    for (const auto& [name, aaaa, a, answer] :
         {Failure{"no such name", nxdomain, std::nullopt, nxdomain}, Failure{"no A", noerror, noerror, noerror},
          Failure{"SERVFAIL for A", noerror, servfail, servfail}, Failure{"REFUSED for A", noerror, refused, servfail},
          Failure{"SERVFAIL for AAAA, no A", servfail, noerror, noerror}}) {
        Bench run;
        run.query(query_for("a.dutperf.test"));
        run.respond({.rcode = aaaa});
        ASSERT_EQ(run.asked.size(), a ? 2U : 1U) << name;
        if (a) run.respond({.rcode = *a});
        ASSERT_EQ(run.answers.size(), 1U) << name;
        EXPECT_EQ(run.answers[0].rcode, answer) << name;
        EXPECT_TRUE(run.answers[0].addresses.empty()) << name;
        EXPECT_EQ(run.resolver.counts().synthesised, 0U) << name;
    }
}

TEST(Resolver, CachesExactlySoManyNamesAndEvictsTheOneUnusedForLongest) {
    Bench run({.cache_names = 3});
    for (const char* name : {"a1.test", "a2.test", "a3.test", "a1.test"}) run.resolve(name);
    EXPECT_EQ(run.resolver.counts().cache_hits, 1U);
    run.resolve("a4.test");  // evicts a2
    for (const char* name : {"a1.test", "a3.test", "A4.TEST"}) run.resolve(name);
    EXPECT_EQ(run.resolver.counts().cache_hits, 4U);
    run.resolve("a2.test");
    EXPECT_EQ(run.resolver.counts().cache_hits, 4U);
    EXPECT_EQ(run.resolver.counts().asked_aaaa, 5U);
    EXPECT_EQ(run.resolver.counts().asked_a, 5U);
    EXPECT_EQ(run.resolver.cache().size(), 3U);
    EXPECT_EQ(run.resolver.cache().evicted(), 2U);
    EXPECT_EQ(run.answers.size(), 9U);
    for (const Said& answer : run.answers) EXPECT_EQ(answer.addresses, Addresses{"2001:2:0:6464::c612:7"});
}

TEST(Resolver, CachesForTheTtl) {
    Bench run({.cache_names = 3});
    run.resolve("a.test");
    run.now += 20 * kS;
    EXPECT_EQ(run.resolve("a.test").ttl_s, kSoaTtlS - 20);
    run.now += 40 * kS;
    EXPECT_EQ(run.resolve("a.test").ttl_s, kSoaTtlS);
    EXPECT_EQ(run.resolver.counts().cache_hits, 1U);
    EXPECT_EQ(run.resolver.counts().asked_a, 2U);
}

TEST(Resolver, AsksOnceMoreAfterASecondThenFails) {
    Bench run;
    run.query(query_for("a.test"));
    run.now += kS - 1;
    run.resolver.expire(run.now);
    EXPECT_EQ(run.asked.size(), 1U);
    run.now += 1;
    run.resolver.expire(run.now);
    ASSERT_EQ(run.asked.size(), 2U);
    EXPECT_EQ(run.asked[1].bytes, run.asked[0].bytes);
    EXPECT_EQ(run.ports[1], run.ports[0]);
    run.now += kS;
    run.resolver.expire(run.now);
    ASSERT_EQ(run.answers.size(), 1U);
    EXPECT_EQ(run.answers[0].rcode, dns::Rcode::servfail);
    EXPECT_EQ(run.resolver.counts().retries, 1U);
    EXPECT_EQ(run.resolver.counts().timed_out, 1U);
    EXPECT_EQ(run.resolver.pending(), 0U);
}

TEST(Resolver, TakesOneResponseToAMessageThatItSentTwice) {
    Bench run;
    run.query(query_for("a.test"));
    run.now += kS;
    run.resolver.expire(run.now);
    run.respond(0, {});
    EXPECT_EQ(run.asked.back().type, dns::type::kA);
    run.respond(1, {});
    EXPECT_EQ(run.resolver.counts().unexpected, 1U);
    const Ipv4 address{198, 18, 0, 7};
    run.respond(2, {.ttl_s = kTtlS, .a = &address});
    EXPECT_EQ(run.answers.size(), 1U);
    EXPECT_EQ(run.answers[0].ttl_s, kTtlS) << "of 600 s without a SOA";
    run.now += 5 * kS;
    run.resolver.expire(run.now);
    EXPECT_EQ(run.asked.size(), 3U);
}

TEST(Resolver, IgnoresResponsesToOtherQuestions) {
    Bench run;
    run.query(query_for("a.test"));
    const auto forged = [&](const std::string& name, std::uint16_t type, int id_offset, int port_offset,
                            bool is_response) {
        const auto id = static_cast<std::uint16_t>(run.asked[0].id + id_offset);
        Message message = query_for(name, id, type);
        if (is_response) message.resize(dns::write_reply(message, *dns::read_question(message), {}));
        run.resolver.response(run.now, static_cast<std::uint16_t>(run.ports[0] + port_offset), message);
    };
    forged("c.test", dns::type::kAaaa, 0, 0, true);
    forged("a.test", dns::type::kA, 0, 0, true);
    forged("a.test", dns::type::kAaaa, 1, 0, true);
    forged("a.test", dns::type::kAaaa, 0, 1, true);
    forged("a.test", dns::type::kAaaa, 0, 0, false);
    run.resolver.response(run.now, run.ports[0], Message{1, 2, 3});
    EXPECT_EQ(run.resolver.counts().unexpected, 6U);
    EXPECT_EQ(run.asked.size(), 1U);
    forged("A.test", dns::type::kAaaa, 0, 0, true);
    EXPECT_EQ(run.asked.size(), 2U);
}

TEST(Resolver, LosesQueriesBeyondThePendingOnes) {
    Bench run({.pending = 2});
    for (const char* name : {"a1.test", "a2.test", "a3.test"}) run.query(query_for(name));
    EXPECT_EQ(run.asked.size(), 2U);
    EXPECT_EQ(run.resolver.counts().pending_full, 1U);
    EXPECT_EQ(run.resolver.pending(), 2U);
    run.respond(0, {.rcode = dns::Rcode::nxdomain});
    run.query(query_for("a4.test"));
    EXPECT_EQ(run.asked.size(), 3U);
    run.resolver.clear();
    EXPECT_EQ(run.resolver.pending(), 0U);
    run.now += 5 * kS;
    run.resolver.expire(run.now);
    EXPECT_EQ(run.asked.size(), 3U);
    EXPECT_EQ(run.answers.size(), 1U);
}

// Far more than there are serial numbers or, at once, ports.
TEST(Resolver, FindsEachOfManyPendingQueries) {
    constexpr std::size_t kMany = 40'000;
    Bench run({.pending = 30'000});
    for (std::size_t i = 0; i < kMany; ++i) {
        run.query(query_for(std::to_string(i), static_cast<std::uint16_t>(i)));
        if (i >= 10'000) run.respond(i - 10'000, {.rcode = dns::Rcode::nxdomain});
    }
    ASSERT_EQ(run.answers.size(), kMany - 10'000);
    for (std::size_t i = 0; i < run.answers.size(); ++i) EXPECT_EQ(run.answers[i].id, static_cast<std::uint16_t>(i));
    EXPECT_EQ(run.resolver.pending(), 10'000U);
    EXPECT_EQ(run.resolver.counts().unexpected, 0U);
}

Said wrong_answer(Wrong wrong) {
    Dns64Properties properties;
    properties.wrong_every[static_cast<std::size_t>(wrong)] = 1;
    Bench run(properties);
    return run.resolve("a.test", 0x0007);
}

TEST(Resolver, IsWrongAsItWasTold) {
    EXPECT_EQ(wrong_answer(Wrong::wrong_prefix).addresses, Addresses{"2001:3:0:6464::c612:7"});
    EXPECT_EQ(wrong_answer(Wrong::wrong_address).addresses, Addresses{"2001:2:0:6464::c612:6"});
    EXPECT_EQ(wrong_answer(Wrong::servfail).rcode, dns::Rcode::servfail);
    EXPECT_EQ(wrong_answer(Wrong::refused).rcode, dns::Rcode::refused);
    EXPECT_EQ(wrong_answer(Wrong::nxdomain).rcode, dns::Rcode::nxdomain);
    const Said empty = wrong_answer(Wrong::nodata), cut = wrong_answer(Wrong::truncated);
    EXPECT_EQ(empty.rcode, dns::Rcode::noerror);
    EXPECT_TRUE(empty.addresses.empty());
    EXPECT_EQ(cut.flags, 0x8380U) << "QR, TC, RD, RA";
    EXPECT_TRUE(cut.addresses.empty());
    EXPECT_FALSE(wrong_answer(Wrong::malformed).is_whole);
    EXPECT_EQ(wrong_answer(Wrong::wrong_id).id, 0x8007U);
    EXPECT_EQ(wrong_answer(Wrong::wrong_id).addresses, Addresses{"2001:2:0:6464::c612:7"});
}

TEST(Resolver, WrongAnswersAreEveryNthWithAddresses) {
    Dns64Properties properties{.cache_names = 10};
    properties.wrong_every[static_cast<std::size_t>(Wrong::servfail)] = 3;
    properties.wrong_every[static_cast<std::size_t>(Wrong::nodata)] = 4;
    Bench run(properties);
    for (int i = 0; i < 24; ++i) run.resolve("a.test");
    run.query(query_for("a.test", 7, dns::type::kA));
    for (std::size_t i = 0; i < 24; ++i) {
        const bool servfail = (i + 1) % 3 == 0, nodata = (i + 1) % 4 == 0;
        EXPECT_EQ(run.answers[i].rcode, servfail ? dns::Rcode::servfail : dns::Rcode::noerror) << i;
        EXPECT_EQ(run.answers[i].addresses.empty(), servfail || nodata) << i;
    }
    EXPECT_EQ(run.resolver.wrong()[static_cast<std::size_t>(Wrong::servfail)], 8U);
    EXPECT_EQ(run.resolver.wrong()[static_cast<std::size_t>(Wrong::nodata)], 4U) << "every 12th is the other one";
    EXPECT_EQ(run.resolver.counts().cache_hits, 23U);
}

TEST(Resolver, AnswersWhatItDoesNotDo) {
    Bench run;
    run.query(query_for("a.test", 7, dns::type::kA));
    Message notify = query_for("a.test");
    notify[2] |= 4U << 3U;
    run.query(notify);
    Message cut = query_for("a.test");
    cut.resize(20);
    run.query(cut);
    ASSERT_EQ(run.answers.size(), 3U);
    const auto rcode = [&](std::size_t i) { return run.answers[i].bytes[3] & 0xFU; };
    EXPECT_EQ(rcode(0), 4U);
    EXPECT_EQ(rcode(1), 4U);
    EXPECT_EQ(rcode(2), 1U);
    Message response = query_for("a.test");
    response[2] |= 0x80U;
    run.query(response);
    run.query(Message{1, 2, 3});
    EXPECT_EQ(run.answers.size(), 3U);
    EXPECT_TRUE(run.asked.empty());
    EXPECT_EQ(run.resolver.counts().unsupported, 2U);
    EXPECT_EQ(run.resolver.counts().malformed, 3U);
}

// Queries and responses with wrong bytes or cut short: each is answered, dropped or left pending, and counted.
TEST(Resolver, SurvivesAnyMessage) {
    Bench run({.cache_names = 5, .pending = 100});
    std::uint64_t draws = 0;
    const auto draw = [&](std::uint64_t below) { return random_bits(3, draws++) % below; };
    const auto damage = [&](Message message) {
        for (std::uint64_t i = draw(4); i > 0; --i)
            message[draw(message.size())] = static_cast<std::uint8_t>(draw(256));
        message.resize(draw(3) == 0 ? draw(message.size() + 1) : message.size());
        return message;
    };
    const Ipv4 address{198, 18, 0, 7};
    for (int i = 0; i < 20'000; ++i) {
        run.query(damage(query_for("a.test")));
        if (run.asked.empty()) continue;
        Message response = run.asked.back().bytes;
        response.resize(512);
        const dns::Reply reply{.ttl_s = kTtlS, .a = &address, .soa = true, .zone_at = 2};
        response.resize(dns::write_reply(response, *dns::read_question(response), reply));
        run.resolver.response(run.now, run.ports.back(), damage(response));
        run.now += kS / 100;
        run.resolver.expire(run.now);
    }
    const ResolverCounts& counts = run.resolver.counts();
    EXPECT_EQ(counts.answered, run.answers.size());
    EXPECT_LE(counts.answered + run.resolver.pending() + counts.pending_full, counts.queries);
    EXPECT_GE(counts.answered + run.resolver.pending() + counts.pending_full + counts.malformed, counts.queries);
    EXPECT_GT(counts.synthesised, 1000U);
    EXPECT_GT(counts.malformed, 1000U);
    EXPECT_GT(counts.unexpected, 1000U);
}

}  // namespace
}  // namespace dutperf

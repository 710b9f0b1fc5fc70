// SPDX-License-Identifier: Apache-2.0
// The questions of a trial, and answers by rows: a message, and what is wrong with it.
#include "dns/questions.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/ip_packet.hpp"
#include "trial/query_log.hpp"

namespace dutperf::dns {
namespace {

using Buffer = std::vector<std::uint8_t>;

TrialQuestions questions() {
    TrialQuestions made;
    made.source = *parse_ipv6("2001:2::2");
    made.destination = *parse_ipv6("2001:2::1");
    made.first_port = 0x2000;
    made.ports = 4;
    made.zone = *parse_zone("zone");
    made.prefix = {.prefix = *parse_ipv6("64:ff9b::"), .length = 96};
    made.aaaa = {.n = 2, .m = 1};  // odd numbers
    made.run = 0x12AB;
    made.trial = 7;
    made.first_id = 0xFFFF;
    made.count = 1000;
    return made;
}

TEST(DnsQuestions, PortAndIdTellTheNumber) {
    const TrialQuestions all = questions();
    std::map<std::pair<std::uint16_t, std::uint16_t>, std::uint64_t> seen;
    for (std::uint64_t k = 0; k < all.count; ++k) {
        const std::uint16_t port = all.port_of(k), id = all.id_of(k);
        EXPECT_TRUE(seen.insert({{port, id}, k}).second) << k;
        EXPECT_EQ(all.number_of(port, id), k);
    }
    EXPECT_FALSE(all.number_of(0x1FFF, 0));
    EXPECT_FALSE(all.number_of(0x2004, 0));
    EXPECT_FALSE(all.number_of(0x2000, 0x8000)) << "beyond the trial's queries";
}

TEST(DnsQuestions, CachedNamesAreSpreadEvenly) {
    TrialQuestions some = questions();
    some.cached = CachedNames{.names = 3, .share = {.n = 5, .m = 2}, .trial = 4};
    std::vector<std::uint64_t> cached, fresh;
    for (std::uint64_t k = 0; k < 50; ++k) {
        const TestName name = some.name_of(k);
        EXPECT_EQ(name.has_aaaa, name.number % 2 == 1);
        (name.trial == 4 ? cached : fresh).push_back(name.number);
    }
    ASSERT_EQ(cached.size(), 20U);
    for (std::size_t i = 0; i < cached.size(); ++i) EXPECT_EQ(cached[i], i % 3);
    for (std::size_t i = 0; i < fresh.size(); ++i) EXPECT_EQ(fresh[i], i);
}

TEST(DnsQuestions, QueriesAreWrittenOverEachOther) {
    const TrialQuestions all = questions();
    const QueryFrame made(all, {2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2});
    Buffer frame(made.data(), made.data() + made.length());
    for (const std::uint64_t k : {0U, 1U, 999U, 2U}) {
        made.write(k, frame.data());
        const auto datagram = read_datagram(frame);
        ASSERT_TRUE(datagram);
        EXPECT_EQ(datagram->checksum, Checksum::good);
        EXPECT_EQ(datagram->between.source_port, all.port_of(k));
        const auto query = read_message(datagram->payload);
        ASSERT_TRUE(query && query->edns);
        EXPECT_EQ(query->header.id, all.id_of(k));
        EXPECT_EQ(read_test_label(query->question.name.subspan(1, kTestLabelSize)), all.name_of(k));
    }
    EXPECT_EQ(
        Buffer(frame.begin() + 62, frame.end()),
        bytes("ffff 0100 0001 0000 0000 0001 13 61 31326162 30303037 30303030303030303032 047a6f6e65 00 001c 0001 "
              "00 0029 04d0 00000000 0000"));
}

TrialQuestions of_addresses() {
    TrialQuestions made = questions();
    made.aaaa = {};
    made.addresses = AddressNames{.network = 0xC6120000, .size = 1024, .first = 1020, .slices = {}};
    return made;
}

std::string label_of(const TrialQuestions& asked, std::uint64_t k) {
    Buffer label(asked.label_size());
    asked.write_label(k, label.data());
    return {label.begin(), label.end()};
}

TEST(DnsQuestions, NamesOfAddressesBeginAgainBehindTheLast) {
    const TrialQuestions asked = of_addresses();
    EXPECT_EQ(label_of(asked, 0), "198-018-003-252");
    EXPECT_EQ(label_of(asked, 3), "198-018-003-255");
    EXPECT_EQ(label_of(asked, 4), "198-018-000-000");
    EXPECT_EQ(to_string(asked.records_of(4).a), "198.18.0.0");
    EXPECT_FALSE(asked.records_of(4).aaaa);
}

TEST(DnsQuestions, CachedNamesOfAddressesCountFromTheirOwn) {
    TrialQuestions some = of_addresses();
    some.addresses->first = 512;
    some.cached = CachedNames{.names = 2, .share = {.n = 2, .m = 1}, .first = 256};
    std::vector<std::string> labels;
    for (std::uint64_t k = 0; k < 6; ++k) labels.push_back(label_of(some, k));
    EXPECT_EQ(labels, (std::vector<std::string>{"198-018-002-000", "198-018-001-000", "198-018-002-001",
                                                "198-018-001-001", "198-018-002-002", "198-018-001-000"}));
}

TEST(DnsQuestions, SlicesTakeTurnsByBursts) {
    TrialQuestions asked = of_addresses();
    asked.addresses->first = 0;
    asked.addresses->slices = AddressNames::Slices{.count = 2, .burst = 2, .names = 4};
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < 8; ++i) numbers.push_back(asked.addresses->number(i));
    EXPECT_EQ(numbers, (std::vector<std::uint64_t>{0, 1, 4, 5, 2, 3, 6, 7}));
}

TEST(DnsQuestions, QueriesForNamesOfAddressesAreWrittenOverEachOther) {
    const TrialQuestions all = of_addresses();
    const QueryFrame made(all, {2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2});
    Buffer frame(made.data(), made.data() + made.length());
    for (const std::uint64_t k : {5U, 999U, 2U}) {
        made.write(k, frame.data());
        const auto datagram = read_datagram(frame);
        ASSERT_TRUE(datagram);
        EXPECT_EQ(datagram->checksum, Checksum::good);
        const auto query = read_message(datagram->payload);
        ASSERT_TRUE(query && query->edns);
        EXPECT_TRUE(all.is_label_of(k, query->question.name.subspan(1, kAddressLabelSize)));
        EXPECT_FALSE(all.is_label_of(k + 1, query->question.name.subspan(1, kAddressLabelSize)));
    }
}

TEST(DnsQuestions, AnswersForAnAddressEmbedIt) {
    // query 2: the name of 198.18.3.254
    const std::string name = "0f 3139382d3031382d3030332d323534 047a6f6e65 00 001c 0001 ";
    const std::string other = "0f 3139382d3031382d3030332d323535 047a6f6e65 00 001c 0001 ";
    const auto answer = [](const std::string& question, const std::string& address) {
        return "ffff 8180 0001 0001 0000 0000 " + question + "c00c 001c 0001 00000005 0010 " + address;
    };
    const auto wrong = [](const std::string& message) {
        return check_answer(of_addresses(), 0x2002, bytes(message)).wrong;
    };
    EXPECT_EQ(wrong(answer(name, "0064ff9b 00000000 00000000 c61203fe")), std::nullopt);
    EXPECT_EQ(wrong(answer(name, "0064ff9c 00000000 00000000 c61203fe")), Wrong::wrong_prefix);
    EXPECT_EQ(wrong(answer(name, "0064ff9b 00000000 00000000 c61203ff")), Wrong::wrong_address);
    EXPECT_EQ(wrong(answer(other, "0064ff9b 00000000 00000000 c61203ff")), Wrong::unexpected);
}

// Answers to query 2, which asks for name 2, an A record only; and to query 3, for name 3 with an AAAA record.
TEST(DnsQuestions, AnswersAreCheckedByTheTable) {
    const std::string of2 = "13 61 31326162 30303037 30303030303030303032 047a6f6e65 00 001c 0001 ";
    const std::string of3 = "13 62 31326162 30303037 30303030303030303033 047a6f6e65 00 001c 0001 ";
    const std::string aaaa = "c00c 001c 0001 00000005 0010 ";
    const std::string right = aaaa + "0064ff9b 00000000 00000000 c6120002 ";
    const auto answers = [](int count) { return "ffff 8180 0001 000" + std::to_string(count) + " 0000 0000 "; };
    using enum Wrong;
    const struct {
        const char* name;
        std::uint16_t port;
        std::string message;
        std::optional<Wrong> wrong;
    } rows[] = {
        {"right", 0x2002, answers(1) + of2 + right, std::nullopt},
        {"behind a CNAME", 0x2002, answers(2) + of2 + "c00c 0005 0001 00000005 0002 c020 " + right, std::nullopt},
        {"twice right", 0x2002, answers(2) + of2 + right + right, std::nullopt},
        {"its own AAAA record", 0x2003, answers(1) + of3 + aaaa + "20010002 00000d64 00000000 00000003", std::nullopt},
        {"synthesised beside its own", 0x2003, answers(1) + of3 + aaaa + "0064ff9b 00000000 00000000 c6120003",
         wrong_address},
        {"no record", 0x2002, answers(0) + of2, nodata},
        {"another type", 0x2002, answers(1) + of2 + "c00c 0001 0001 00000005 0004 c6120002", nodata},
        {"in the additional section", 0x2002, "ffff 8180 0001 0000 0000 0001 " + of2 + right, nodata},
        {"another prefix", 0x2002, answers(1) + of2 + aaaa + "0064ff9c 00000000 00000000 c6120002", wrong_prefix},
        {"another address", 0x2002, answers(1) + of2 + aaaa + "0064ff9b 00000000 00000000 c6120003", wrong_address},
        {"one right, one wrong", 0x2002, answers(2) + of2 + right + aaaa + "0064ff9b 00000000 00000000 c6120003",
         wrong_address},
        {"nxdomain", 0x2002, "ffff 8183 0001 0000 0000 0000 " + of2, nxdomain},
        {"servfail", 0x2002, "ffff 8182 0001 0000 0000 0000 " + of2, servfail},
        {"refused", 0x2002, "ffff 8185 0001 0000 0000 0000 " + of2, refused},
        {"notimp", 0x2002, "ffff 8184 0001 0000 0000 0000 " + of2, other_rcode},
        {"badvers", 0x2002, "ffff 8180 0001 0000 0000 0001 " + of2 + "00 0029 04d0 01000000 0000", other_rcode},
        {"formerr without a question", 0x2002, "ffff 8181 0000 0000 0000 0000", other_rcode},
        {"truncated", 0x2002, "ffff 8380 0001 0001 0000 0000 " + of2, truncated},
        {"a query", 0x2002, "ffff 0100 0001 0000 0000 0000 " + of2, malformed},
        {"half a header", 0x2002, "ffff 8180", malformed},
        {"no question", 0x2002, "ffff 8180 0000 0000 0000 0000", malformed},
        {"half a record", 0x2002, answers(1) + of2 + aaaa, malformed},
        {"a short address", 0x2002, answers(1) + of2 + "c00c 001c 0001 00000005 0004 c6120002", malformed},
        {"the question of another query", 0x2002, answers(1) + of3 + right, unexpected},
        {"another type asked for", 0x2002,
         "ffff 8180 0001 0000 0000 0000 " + of2.substr(0, of2.size() - 10) + "0001 0001", unexpected},
        {"no port of ours", 0x2004, answers(1) + of2 + right, unexpected},
        {"no ID of ours", 0x2002, "4000 8180 0001 0000 0000 0000 " + of2, unexpected},
    };
    for (const auto& row : rows) {
        const Buffer message = bytes(row.message);
        const Verdict verdict = check_answer(questions(), row.port, message);
        EXPECT_EQ(verdict.wrong, row.wrong) << row.name;
        EXPECT_TRUE(row.wrong || verdict.number == row.port - 0x2000U) << row.name;
        for (std::size_t size = 0; size < message.size(); ++size) {
            const Buffer cut(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(size));
            EXPECT_TRUE(check_answer(questions(), row.port, cut).wrong) << row.name << " of " << size << " bytes";
        }
    }
}

TEST(QueryLog, KnowsTheLastQueriesOnly) {
    constexpr std::uint64_t kEntries = 1024;
    QueryLog log(kEntries);
    EXPECT_FALSE(log.stamp_of(0));
    EXPECT_FALSE(log.stamp_of((std::uint64_t{1} << 30U) - 1));
    for (std::uint64_t k = 0; k < 3 * kEntries; ++k) log.note(k, k << 38U | 1U);
    EXPECT_FALSE(log.stamp_of(2 * kEntries - 1));
    EXPECT_EQ(log.stamp_of(2 * kEntries), (2 * kEntries << 38U | 1U) & kMask40);
    EXPECT_TRUE(log.stamp_of(3 * kEntries - 1));
    EXPECT_FALSE(log.stamp_of(3 * kEntries));
}

}  // namespace
}  // namespace dutperf::dns

// SPDX-License-Identifier: Apache-2.0
// The connection table in virtual time: its properties hold exactly, to the frame and to the tick; and over thousands
// of random events it does what a model without any hash table or list does.
#include "refdut/connection_table.hpp"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <random>
#include <set>

namespace dutperf {
namespace {

constexpr std::uint64_t kClock = 1'000'000'000;  // ticks are ns
constexpr Ticks kMs = 1'000'000, kSecond = 1'000 * kMs;

const Endpoint kRemote{{198, 19, 0, 2}, 7};

InsideEndpoint inside(std::uint16_t port) { return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 198, 18, 0, 2}, port}; }

OutsidePool pool(std::uint16_t ports, std::size_t addresses = 1) {
    OutsidePool made{.addresses = {}, .first_port = 2000, .last_port = static_cast<std::uint16_t>(2000 + ports - 1)};
    for (std::size_t i = 0; i < addresses; ++i)
        made.addresses.push_back({198, 19, 254, static_cast<std::uint8_t>(129 + i)});
    return made;
}

// A table, and a clock that steps by a microsecond with each frame.
struct Bench {
    ConnectionTable table;
    Ticks now = kSecond;

    explicit Bench(const ConnectionProperties& properties, const OutsidePool& outside = pool(1000))
        : table(outside, properties, kClock) {}

    // The outside port of a frame from this inside port; nothing if it is lost, and then why.
    std::optional<std::uint16_t> out(std::uint16_t port, const Endpoint& remote = kRemote) {
        now += 1000;
        const auto found = table.outward(inside(port), remote, now);
        lost.reset();
        if (const Loss* loss = std::get_if<Loss>(&found)) lost = *loss;
        return lost ? std::nullopt : std::optional(std::get<Endpoint>(found).port);
    }
    // The inside port of a frame to this outside port.
    std::optional<std::uint16_t> in(std::uint16_t port, const Endpoint& remote = kRemote) {
        now += 1000;
        const auto found = table.inward({{198, 19, 254, 129}, port}, remote, now);
        return found ? std::optional(found->port) : std::nullopt;
    }
    // Inside ports whose connections exist, by the outside ports that they had.
    std::set<std::uint16_t> existing(const std::map<std::uint16_t, std::uint16_t>& outside_ports) {
        std::set<std::uint16_t> found;
        for (const auto& [port, outside] : outside_ports) {
            if (in(outside) == port) found.insert(port);
        }
        return found;
    }

    std::optional<Loss> lost;
};

// Frames of new connections 1 … count, one after the other, and the outside ports of those that passed.
std::map<std::uint16_t, std::uint16_t> establish(Bench& bench, std::uint16_t count, std::uint16_t from = 1) {
    std::map<std::uint16_t, std::uint16_t> outside;
    for (std::uint16_t port = from; port < from + count; ++port) {
        if (const auto made = bench.out(port)) outside[port] = *made;
    }
    return outside;
}

TEST(ConnectionTable, AConnectionKeepsItsOutsideEndpointAndWorksBothWays) {
    Bench bench({});
    const auto outside = establish(bench, 100);
    for (const auto& [port, made] : outside) {
        EXPECT_EQ(bench.out(port), made);
        EXPECT_EQ(bench.in(made), port);
        EXPECT_EQ(bench.in(made, {kRemote.address, 8}), std::nullopt) << "from another port";
        EXPECT_EQ(bench.in(made, {{198, 19, 0, 3}, 7}), std::nullopt) << "from another address";
    }
    EXPECT_EQ(outside.begin()->second, 2000);
    EXPECT_EQ(outside.rbegin()->second, 2099) << "one after the other";
    EXPECT_EQ(bench.table.counts().created, 100U);
    EXPECT_EQ(bench.table.counts().current, 100U);
}

TEST(ConnectionTable, CapacityIsExact) {
    for (const std::uint32_t capacity : {1U, 2U, 63U, 64U, 65U}) {
        Bench bench({.capacity = capacity});
        const auto outside = establish(bench, 100);
        EXPECT_EQ(outside.size(), capacity);
        EXPECT_EQ(bench.lost, Loss::table_full);
        EXPECT_EQ(bench.out(1), outside.at(1)) << "existing connections still work";
        EXPECT_EQ(bench.table.counts().refused, 100U - capacity);
        EXPECT_EQ(bench.table.counts().highest, capacity);
    }
}

TEST(ConnectionTable, EvictsTheOneUnusedForLongest) {
    Bench bench({.capacity = 4, .when_full = WhenFull::evict});
    auto outside = establish(bench, 4);
    bench.out(1);                           // so that 2 is the oldest,
    bench.in(outside.at(2));                // then 3
    outside.merge(establish(bench, 2, 5));  // in place of 3, then 4
    EXPECT_EQ(bench.existing(outside), (std::set<std::uint16_t>{1, 2, 5, 6}));
    EXPECT_EQ(bench.table.counts().evicted, 2U);
    EXPECT_EQ(bench.table.counts().current, 4U);
}

TEST(ConnectionTable, EvictsTheKOldestAtOnce) {
    Bench bench({.capacity = 10, .when_full = WhenFull::evict, .evict_count = 4});
    auto outside = establish(bench, 11);
    EXPECT_EQ(bench.table.counts().current, 7U) << "S - K + 1 (RFC 9693 4.9)";
    EXPECT_EQ(bench.existing(outside), (std::set<std::uint16_t>{5, 6, 7, 8, 9, 10, 11}));
    Bench smaller({.capacity = 3, .when_full = WhenFull::evict, .evict_count = 100});
    establish(smaller, 4);
    EXPECT_EQ(smaller.table.counts().current, 1U);
}

TEST(ConnectionTable, EvictsTheOldestUnansweredAsLinuxDoes) {
    Bench bench({.capacity = 4, .when_full = WhenFull::evict_unanswered});
    auto outside = establish(bench, 4);
    bench.in(outside.at(1));
    outside.merge(establish(bench, 1, 5));
    EXPECT_EQ(bench.existing(outside), (std::set<std::uint16_t>{1, 3, 4, 5})) << "and now all are answered";
    EXPECT_EQ(bench.out(6), std::nullopt);
    EXPECT_EQ(bench.lost, Loss::table_full);
}

TEST(ConnectionTable, PassesWithoutAConnection) {
    Bench bench({.capacity = 2, .when_full = WhenFull::pass});
    const auto outside = establish(bench, 5);
    EXPECT_EQ(outside.size(), 5U) << "all pass";
    EXPECT_EQ(bench.existing(outside), (std::set<std::uint16_t>{1, 2}));
    EXPECT_EQ(bench.table.counts().untracked, 3U);
    EXPECT_EQ(bench.table.counts().created, 2U);
}

TEST(ConnectionTable, TimesOutToTheTick) {
    for (const bool late : {false, true}) {
        Bench bench({.capacity = 1, .timeout_ns = 5 * kMs});
        const auto made = bench.out(1);
        bench.now += 5 * kMs - 1001 - 1000 + (late ? 1001 : 1000);  // out() and in() add 1000 each
        EXPECT_EQ(bench.in(*made), late ? std::nullopt : std::optional<std::uint16_t>(1));
        EXPECT_EQ(bench.table.counts().expired, late ? 1U : 0U);
    }
}

TEST(ConnectionTable, AnyFrameRestartsTheTimeout) {
    Bench bench({.timeout_ns = 5 * kMs});
    const auto outside = establish(bench, 3);
    bench.now += 4 * kMs;
    bench.out(1);
    bench.in(outside.at(2));
    bench.now += 2 * kMs;
    bench.table.expire(bench.now, UINT32_MAX);
    EXPECT_EQ(bench.existing(outside), (std::set<std::uint16_t>{1, 2}));
    EXPECT_EQ(bench.table.counts().current, 2U);
    EXPECT_EQ(bench.table.counts().expired, 1U);
}

TEST(ConnectionTable, AnExpiredConnectionMakesRoomInAFullTable) {
    Bench bench({.capacity = 2, .timeout_ns = 5 * kMs});
    establish(bench, 2);
    bench.now += 6 * kMs;
    EXPECT_EQ(establish(bench, 3, 3).size(), 2U);
    EXPECT_EQ(bench.table.counts().expired, 2U);
}

// Connections per second: one in establishment, `establishment_queue` more.
TEST(ConnectionTable, EstablishmentRateIsExact) {
    Bench bench({.capacity = 10'000, .establishment_cps = 1000, .establishment_queue = 4}, pool(10'000));
    bench.now = kSecond - 1000;
    EXPECT_EQ(establish(bench, 10).size(), 5U) << "at once: one, and the queue";
    EXPECT_EQ(bench.lost, Loss::establishment);
    EXPECT_EQ(bench.out(1).has_value(), true) << "a frame of an existing connection is not affected";
    std::size_t passed = 0;
    for (std::uint16_t port = 100; port < 2100; ++port) {  // 2000 connections/s for a second
        bench.now += 499'000;
        passed += bench.out(port).has_value() ? 1 : 0;
    }
    EXPECT_EQ(passed, 1000U);
}

TEST(ConnectionTable, ARateBelowTheLimitIsNotLimited) {
    Bench bench({.capacity = 10'000, .establishment_cps = 1000, .establishment_queue = 0}, pool(10'000));
    for (std::uint16_t port = 1; port <= 1000; ++port) {
        bench.now += kMs - 1000;
        ASSERT_TRUE(bench.out(port)) << port;
    }
}

TEST(ConnectionTable, RemapsEveryNthFrameOfAConnection) {
    Bench bench({.remap_every = 3});
    std::vector<std::uint16_t> outside;
    for (int i = 0; i < 7; ++i) outside.push_back(bench.out(1).value());
    EXPECT_EQ(outside, (std::vector<std::uint16_t>{2000, 2000, 2001, 2001, 2001, 2002, 2002}));
    EXPECT_EQ(bench.in(2000), std::nullopt);
    EXPECT_EQ(bench.in(2001), std::nullopt);
    EXPECT_EQ(bench.in(2002), 1);
    EXPECT_EQ(bench.table.counts().remapped, 2U);
    EXPECT_EQ(bench.table.counts().created, 1U);
}

TEST(ConnectionTable, RemapsAfterATime) {
    Bench bench({.remap_after_ms = 10});
    const auto before = bench.out(1);
    bench.now += 9 * kMs;
    EXPECT_EQ(bench.out(1), before);
    bench.now += kMs;
    const auto after = bench.out(1);
    EXPECT_NE(after, before);
    EXPECT_EQ(bench.out(1), after);
    EXPECT_EQ(bench.table.counts().remapped, 1U);
}

TEST(ConnectionTable, PortsOfThePoolAreSharedByRemoteEndpoints) {
    Bench bench({}, pool(4));
    for (std::uint16_t remote_port = 1; remote_port <= 50; ++remote_port) {
        std::set<std::uint16_t> outside;
        for (std::uint16_t port = 1; port <= 4; ++port)
            outside.insert(bench.out(port, {{198, 19, 0, 2}, remote_port}).value());
        EXPECT_EQ(outside.size(), 4U) << remote_port;
    }
    EXPECT_EQ(bench.out(5, {{198, 19, 0, 2}, 1}), std::nullopt);
    EXPECT_EQ(bench.lost, Loss::no_port);
    EXPECT_EQ(bench.table.counts().created, 200U);
}

TEST(ConnectionTable, AllAddressesOfThePoolAreUsed) {
    Bench bench({}, pool(2, 3));
    std::set<std::pair<Ipv4, std::uint16_t>> outside;
    for (std::uint16_t port = 1; port <= 6; ++port) {
        const auto made = std::get<Endpoint>(bench.table.outward(inside(port), kRemote, bench.now));
        outside.insert({made.address, made.port});
    }
    EXPECT_EQ(outside.size(), 6U);
}

TEST(ConnectionTable, PreservesAPortThatIsFree) {
    Bench bench({.ports = PortChoice::preserve}, pool(100));
    EXPECT_EQ(bench.out(2050), 2050);
    EXPECT_EQ(bench.out(1), 2000) << "outside the range";
    const InsideEndpoint other{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 198, 18, 0, 3}, 2050};
    EXPECT_EQ(std::get<Endpoint>(bench.table.outward(other, kRemote, bench.now)).port, 2001) << "taken";
}

TEST(ConnectionTable, DeletionTakesItsTime) {
    Bench bench({.deletion_cps = 1000});
    establish(bench, 100);
    const Ticks begin = bench.now;
    bench.table.begin_deletion(begin);
    EXPECT_TRUE(bench.table.continue_deletion(begin + 50 * kMs));
    EXPECT_EQ(bench.table.counts().current, 50U);
    EXPECT_TRUE(bench.table.continue_deletion(begin + 100 * kMs - 1));
    EXPECT_EQ(bench.table.counts().current, 1U);
    EXPECT_FALSE(bench.table.continue_deletion(begin + 100 * kMs));
    EXPECT_EQ(bench.table.counts().current, 0U);
    EXPECT_EQ(bench.table.counts().deleted, 100U);
}

TEST(ConnectionTable, WithoutARateAllAreDeletedAtOnceAndTheTableWorksAgain) {
    Bench bench({.capacity = 50});
    const auto outside = establish(bench, 50);
    bench.table.begin_deletion(bench.now);
    EXPECT_FALSE(bench.table.continue_deletion(bench.now));
    EXPECT_TRUE(bench.existing(outside).empty());
    EXPECT_EQ(establish(bench, 60).size(), 50U);
    EXPECT_EQ(bench.table.counts().deleted, 50U);
}

TEST(ConnectionTable, ClearedCountsLeaveTheConnections) {
    Bench bench({});
    establish(bench, 7);
    bench.table.clear_counts();
    EXPECT_EQ(bench.table.counts().created, 0U);
    EXPECT_EQ(bench.table.counts().current, 7U);
    EXPECT_EQ(bench.table.counts().highest, 7U);
}

// What the table should do, in the simplest words: a list in the order of use.
class Model {
public:
    explicit Model(const ConnectionProperties& properties) : properties_(properties) {}

    struct Connection {
        std::uint16_t port, remote_port, outside;
        bool answered;
        Ticks used;
    };

    // `outside`: what the table chose, if it passed the frame; the model checks it and everything else itself.
    std::optional<Loss> outward(std::uint16_t port, std::uint16_t remote_port, std::optional<std::uint16_t> outside,
                                Ticks now) {
        drop_expired(now);
        if (auto found = find([&](const auto& one) { return one.port == port && one.remote_port == remote_port; })) {
            EXPECT_EQ((*found)->outside, outside);
            use(*found, now, (*found)->answered);
            return std::nullopt;
        }
        if (all_.size() == properties_.capacity) {
            if (properties_.when_full == WhenFull::refuse) return Loss::table_full;
            if (properties_.when_full == WhenFull::pass) return std::nullopt;
            if (properties_.when_full == WhenFull::evict_unanswered) {
                const auto oldest = find([](const auto& one) { return !one.answered; });
                if (!oldest) return Loss::table_full;
                all_.erase(*oldest);
            } else {
                for (std::uint32_t i = 0; i < properties_.evict_count && !all_.empty(); ++i) all_.pop_front();
            }
        }
        EXPECT_FALSE(find([&](const auto& one) { return one.outside == outside && one.remote_port == remote_port; }))
            << "the outside endpoint was taken";
        all_.push_back({port, remote_port, outside.value_or(0), false, now});
        return std::nullopt;
    }

    std::optional<std::uint16_t> inward(std::uint16_t outside, std::uint16_t remote_port, Ticks now) {
        drop_expired(now);
        auto found = find([&](const auto& one) { return one.outside == outside && one.remote_port == remote_port; });
        if (!found) return std::nullopt;
        const std::uint16_t port = (*found)->port;
        use(*found, now, true);
        return port;
    }

    std::size_t count(Ticks now) {
        drop_expired(now);
        return all_.size();
    }
    void clear() { all_.clear(); }

private:
    template <class Matches>
    std::optional<std::list<Connection>::iterator> find(const Matches& matches) {
        const auto found = std::ranges::find_if(all_, matches);
        return found == all_.end() ? std::nullopt : std::optional(found);
    }
    void use(std::list<Connection>::iterator one, Ticks now, bool answered) {
        one->used = now;
        one->answered = answered;
        all_.splice(all_.end(), all_, one);
    }
    void drop_expired(Ticks now) {
        if (properties_.timeout_ns != 0)
            all_.remove_if([&](const auto& one) { return one.used + properties_.timeout_ns <= now; });
    }

    ConnectionProperties properties_;
    std::list<Connection> all_;
};

struct Random {
    const char* name;
    ConnectionProperties properties;
};

class RandomEvents : public testing::TestWithParam<Random> {};

TEST_P(RandomEvents, TheTableDoesWhatTheModelDoes) {
    const ConnectionProperties& properties = GetParam().properties;
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](unsigned limit) { return static_cast<std::uint16_t>(random() % limit); };
        Bench bench(properties, pool(64));
        Model model(properties);
        for (int event = 0; event < 3000; ++event) {
            bench.now += random() % (properties.timeout_ns != 0 ? 2 * properties.timeout_ns / 50 : 1000);
            const Endpoint remote{{198, 19, 0, 2}, static_cast<std::uint16_t>(1 + below(4))};
            if (below(100) < 60) {
                const auto port = static_cast<std::uint16_t>(1 + below(30));
                const auto outside = bench.out(port, remote);
                ASSERT_EQ(model.outward(port, remote.port, outside, bench.now), bench.lost) << seed << " " << event;
            } else {
                const auto port = static_cast<std::uint16_t>(2000 + below(64));
                const auto found = bench.in(port, remote);
                ASSERT_EQ(found, model.inward(port, remote.port, bench.now)) << seed << " " << event;
            }
            if (below(500) == 0) {
                bench.table.clear();
                model.clear();
            }
            if (below(10) == 0) {
                bench.table.expire(bench.now, UINT32_MAX);
                ASSERT_EQ(bench.table.counts().current, model.count(bench.now)) << seed << " " << event;
            }
        }
        const ConnectionCounts& counts = bench.table.counts();
        EXPECT_EQ(counts.created, counts.current + counts.evicted + counts.expired + counts.deleted);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, RandomEvents,
    testing::Values(Random{"refuse", {.capacity = 40}}, Random{"evict", {.capacity = 40, .when_full = WhenFull::evict}},
                    Random{"evict_seven", {.capacity = 40, .when_full = WhenFull::evict, .evict_count = 7}},
                    Random{"evict_unanswered", {.capacity = 40, .when_full = WhenFull::evict_unanswered}},
                    Random{"pass", {.capacity = 40, .when_full = WhenFull::pass}},
                    Random{"timeout", {.capacity = 60, .timeout_ns = kMs}},
                    Random{"timeout_and_evict", {.capacity = 20, .when_full = WhenFull::evict, .timeout_ns = kMs}}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace dutperf

// SPDX-License-Identifier: Apache-2.0
#include "server/requests.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "port/port_spec.hpp"
#include "server/request_stream.hpp"

namespace dutperf {
namespace {

using nlohmann::json;

json stream() {
    return {{"rate_fps", 1000},
            {"foreground", {{"version", 4}, {"size", 64}, {"source", "198.18.0.2"}, {"destination", "198.19.0.2"}}}};
}
json trial() { return {{"trial", 1}, {"duration_ns", 1'000'000'000}, {"drain_ns", 0}, {"forward", stream()}}; }

// The field for which a request is rejected; empty if it is accepted.
std::string rejected_field(const json& request) {
    try {
        read_trial(Reader(request, "params"), 1518);
        return "";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), "bad_request");
        EXPECT_NE(std::string(error.what()).find(error.field()), std::string::npos) << "the message names the member";
        return error.field();
    }
}

// Additional frames with these members changed.
json additional(const json& changed = json::object()) {
    json one{{"name", "management"}, {"frames", {std::string(120, '0')}}, {"every_ns", 1'000'000}};
    one.update(changed);
    return one;
}

struct Row {
    const char* pointer;
    json value;
    const char* field;
};

TEST(Requests, TrialsAreCheckedByTheTable) {
    EXPECT_EQ(rejected_field(trial()), "");
    const json v6{{"version", 6}, {"size", 84}, {"source", "2001:2::2"}, {"destination", "2001:2:0:1000::2"}};
    const std::vector<Row> rows{
        {"/trial", 65535, ""},
        {"/trial", 65536, "params.trial"},
        {"/trial", -1, "params.trial"},
        {"/trial", "1", "params.trial"},
        {"/trial", 1.5, "params.trial"},
        {"/duration_ns", 0, "params.duration_ns"},
        {"/duration_ns", 1, ""},
        {"/rest_ns", 100'000'000'000'000, ""},
        {"/rest_ns", 100'000'000'000'001, "params.rest_ns"},
        {"/burst", 512, ""},
        {"/burst", 513, "params.burst"},
        {"/burst", 0, "params.burst"},
        {"/stamping", "every", ""},
        {"/stamping", "some", "params.stamping"},
        {"/stamping", "tagged", "params.tagged"},
        {"/stamps", "kernel", ""},
        {"/stamps", "card", ""},
        {"/stamps", "nic", "params.stamps"},
        {"/tagged", {{"count", 5}, {"after_ns", 0}}, "params.tagged"},
        {"/lost_delay_ns", 1, "params.lost_delay_ns"},
        {"/frame_timeout_ns", 1, "params.frame_timeout_ns"},
        {"/delays_files", {{"forward", "/d"}}, "params.delays_files"},
        {"/delay_parts", 50, "params.delay_parts"},
        {"/speed", 1, "params.speed"},
        {"/forward/rate_fps", 0, "params.forward.rate_fps"},
        {"/forward/rate_fps", 1'000'000'000, ""},
        {"/forward/rate_fps", 1'000'000'001, "params.forward.rate_fps"},
        {"/forward/then", {{"rate_fps", 1}, {"after_ns", 1}}, ""},
        {"/forward/then", {{"rate_fps", 1'000'000'000}, {"after_ns", 999'999'999}}, ""},
        {"/forward/then", {{"rate_fps", 1}, {"after_ns", 0}}, "params.forward.then.after_ns"},
        {"/forward/then", {{"rate_fps", 1}, {"after_ns", 1'000'000'000}}, "params.forward.then.after_ns"},
        {"/forward/then", {{"rate_fps", 0}, {"after_ns", 1}}, "params.forward.then.rate_fps"},
        {"/forward/then", {{"rate_fps", 1}}, "params.forward.then.after_ns"},
        {"/forward/then", {{"rate_fps", 1}, {"after_ns", 1}, {"then", 1}}, "params.forward.then.then"},
        {"/forward/begin_ns", 999'999'999, ""},
        {"/forward/begin_ns", 1'000'000'000, "params.forward.begin_ns"},
        {"/forward/begin_ns", -1, "params.forward.begin_ns"},
        {"/forward/sends_ns", 1, ""},
        {"/forward/sends_ns", 0, "params.forward.sends_ns"},
        {"/forward/sends_ns", 1'000'000'000, ""},
        {"/forward/sends_ns", 1'000'000'001, "params.forward.sends_ns"},
        {"/forward/grace_ns", 0, ""},
        {"/forward/grace_ns", 86'400'000'000'000, ""},
        {"/forward/grace_ns", 86'400'000'000'001, "params.forward.grace_ns"},
        {"/forward/additional", json::array(), ""},
        {"/forward/additional", json::array({additional()}), ""},
        {"/forward/additional", json::array({additional({{"after_frames", 99}})}),
         "params.forward.additional.0.every_ns"},
        {"/forward/additional", json::array({additional({{"every_ns", 999'999}})}),
         "params.forward.additional.0.every_ns"},
        {"/forward/additional", json::array({additional({{"frames", json::array()}})}),
         "params.forward.additional.0.frames"},
        {"/forward/additional", json::array({additional({{"frames", {std::string(118, '0')}}})}),
         "params.forward.additional.0.frames"},
        {"/forward/additional", json::array({additional({{"frames", {std::string(2 * 1514, '0')}}})}), ""},
        {"/forward/additional", json::array({additional({{"frames", {std::string(2 * 1515, '0')}}})}),
         "params.forward.additional.0.frames"},
        {"/forward/additional", json::array({additional({{"frames", {std::string(121, '0')}}})}),
         "params.forward.additional.0.frames"},
        {"/forward/additional", json::array({additional({{"destination_mac", "next_hop6"}})}), ""},
        {"/forward/additional", json::array({additional({{"destination_mac", "port"}})}),
         "params.forward.additional.0.destination_mac"},
        {"/forward/additional", json::array({additional({{"replies", {{{"at", 12}, {"bytes", "08"}}}}})}), ""},
        {"/forward/additional", json::array({additional({{"replies", {{{"at", 12}, {"bytes", ""}}}}})}),
         "params.forward.additional.0.replies.0.bytes"},
        {"/forward/pattern", {{"kind", "poisson"}}, ""},
        {"/forward/pattern", {{"kind", "poisson"}, {"frames", 2}}, "params.forward.pattern.frames"},
        {"/forward/pattern", {{"kind", "constant"}}, "params.forward.pattern.kind"},
        {"/forward/pattern", {{"kind", "bursts"}, {"frames", 2}}, ""},
        {"/forward/pattern", {{"kind", "bursts"}, {"frames", 1}}, "params.forward.pattern.frames"},
        {"/forward/pattern", {{"kind", "bursts"}, {"frames", 1'000'000}, {"within_fps", 1000}}, ""},
        {"/forward/pattern", {{"kind", "bursts"}, {"frames", 1'000'001}}, "params.forward.pattern.frames"},
        {"/forward/pattern",
         {{"kind", "bursts"}, {"frames", 2}, {"within_fps", 999}},
         "params.forward.pattern.within_fps"},
        {"/forward/pattern", {{"kind", "bursts"}}, "params.forward.pattern.frames"},
        {"/forward/pattern", "poisson", "params.forward.pattern"},
        {"/forward/pattern",
         {{"kind", "profile"}, {"segments", {{{"duration_ns", 1}, {"from_fps", 0}, {"to_fps", 1'000'000'000}}}}},
         ""},
        {"/forward/pattern", {{"kind", "profile"}}, "params.forward.pattern.segments"},
        {"/forward/pattern", {{"kind", "profile"}, {"segments", json::array()}}, "params.forward.pattern.segments"},
        {"/forward/pattern",
         {{"kind", "profile"}, {"segments", {{{"duration_ns", 1}, {"from_fps", 0}, {"to_fps", 0}}}}},
         "params.forward.pattern.segments"},
        {"/forward/pattern",
         {{"kind", "profile"}, {"segments", {{{"duration_ns", 0}, {"from_fps", 0}, {"to_fps", 1}}}}},
         "params.forward.pattern.segments.0.duration_ns"},
        {"/forward/pattern",
         {{"kind", "profile"}, {"segments", {{{"duration_ns", 1}, {"from_fps", 0}, {"to_fps", 1'000'000'001}}}}},
         "params.forward.pattern.segments.0.to_fps"},
        {"/forward/pattern",
         {{"kind", "profile"}, {"segments", {{{"duration_ns", 1}, {"from_fps", 1}, {"to_fps", 1}, {"fps", 1}}}}},
         "params.forward.pattern.segments.0.fps"},
        {"/forward/n", 0, "params.forward.n"},
        {"/forward/m", 3, "params.forward.m"},
        {"/forward/m", 1, "params.forward.background"},
        {"/forward/networks", 256, ""},
        {"/forward/networks", 257, "params.forward.networks"},
        {"/forward/source_port", {{"mode", "random"}, {"min", 1024}, {"max", 65535}}, ""},
        {"/forward/source_port", {{"mode", "random"}, {"min", 2}, {"max", 1}}, "params.forward.source_port.min"},
        {"/forward/source_port", {{"mode", "wild"}, {"min", 1}, {"max", 1}}, "params.forward.source_port.mode"},
        {"/forward/source_port", {{"mode", "fixed"}, {"min", 1}}, "params.forward.source_port.max"},
        {"/forward/source_port", {{"mode", "fixed"}, {"min", 1}, {"max", 65536}}, "params.forward.source_port.max"},
        {"/forward/source_address",
         {{"mode", "random"}, {"min", 0}, {"max", 65535}, {"offset4", 1}, {"offset6", 6}},
         ""},
        {"/forward/source_address",
         {{"mode", "random"}, {"min", 0}, {"max", 65535}, {"offset4", 3}},
         "params.forward.source_address.offset4"},
        {"/forward/foreground", v6, ""},
        {"/forward/foreground/size", 63, "params.forward.foreground.size"},
        {"/forward/foreground/size", 1519, "params.forward.foreground.size"},
        {"/forward/foreground/version", 5, "params.forward.foreground.version"},
        {"/forward/foreground/source", "2001:2::2", "params.forward.foreground.source"},
        {"/forward/foreground/colour", 1, "params.forward.foreground.colour"},
        {"/forward", 7, "params.forward"},
    };
    for (const Row& row : rows) {
        json request = trial();
        request[json::json_pointer(row.pointer)] = row.value;
        EXPECT_EQ(rejected_field(request), row.field) << row.pointer << " = " << row.value;
    }
}

json asking(const json& changed = json::object()) {
    json questions{
        {"source", "2001:2::2"}, {"destination", "2001:2::1"}, {"zone", "dutperf.test"}, {"prefix", "64:ff9b::/96"}};
    questions.update(changed);
    json request = trial();
    request["forward"] = {{"rate_fps", 1000}, {"questions", questions}};
    return request;
}

json sliced(int count, int burst, int names) {
    return {{"network", "198.18.0.0/15"}, {"slices", {{"count", count}, {"burst", burst}, {"names", names}}}};
}

TEST(Requests, NamesOfAddressesGoWithoutServerAndNeedWholeSlices) {
    json served = asking({{"addresses", {{"network", "198.18.0.0/15"}}}});
    served["server"] = {{"port", "right"}, {"zone", "dutperf.test"}};
    EXPECT_EQ(rejected_field(served), "params.forward.questions");
    EXPECT_EQ(rejected_field(asking({{"addresses", sliced(2, 10, 490)}})), "params.forward.questions");
}

TEST(Requests, TimesOfQueriesNeedStampedQueries) {
    json request = asking();
    request["queries_file"] = "/tmp/q.npy";
    EXPECT_EQ(rejected_field(request), "params.queries_file");
    request["stamping"] = "every";
    EXPECT_EQ(rejected_field(request), "");
    request["queries_file"] = "";
    EXPECT_EQ(rejected_field(request), "params.queries_file");
    json frames = trial();
    frames["stamping"] = "every";
    frames["queries_file"] = "/tmp/q.npy";
    EXPECT_EQ(rejected_field(frames), "params.queries_file");
}

TEST(Requests, QuestionsAreCheckedByTheTable) {
    EXPECT_EQ(rejected_field(asking()), "");
    const std::string of = "params.forward.questions";
    const std::vector<std::pair<json, std::string>> rows{
        {{{"source", "198.18.0.2"}}, ".source"},
        {{{"destination", nullptr}}, ".destination"},
        {{{"zone", "Dutperf.test"}}, ".zone"},
        {{{"zone", ""}}, ".zone"},
        {{{"prefix", "64:ff9b::"}}, ".prefix"},
        {{{"prefix", "64:ff9b::/95"}}, ".prefix"},
        {{{"prefix", "64:ff9b::1/96"}}, ".prefix"},
        {{{"prefix", "2001:db8:0:0:100::/96"}}, ".prefix"},
        {{{"prefix", "2001:db8::/32"}}, ""},
        {{{"source_ports", {{"first", 65535}, {"count", 1}}}}, ""},
        {{{"source_ports", {{"first", 65535}, {"count", 2}}}}, ".source_ports.count"},
        {{{"source_ports", {{"first", 1023}, {"count", 1}}}}, ".source_ports.first"},
        {{{"source_ports", {{"first", 1024}, {"count", 16385}}}}, ".source_ports.count"},
        {{{"destination_port", 0}}, ".destination_port"},
        {{{"aaaa", {{"n", 1000}, {"m", 1000}}}}, ""},
        {{{"aaaa", {{"n", 1001}, {"m", 1}}}}, ".aaaa.n"},
        {{{"aaaa", {{"n", 2}, {"m", 3}}}}, ".aaaa.m"},
        {{{"cached", {{"names", 1}, {"n", 2}, {"m", 1}, {"trial", 0}}}}, ""},
        {{{"cached", {{"names", 0}, {"n", 2}, {"m", 1}, {"trial", 0}}}}, ".cached.names"},
        {{{"cached", {{"names", 1}, {"n", 2}, {"m", 1}}}}, ".cached.trial"},
        {{{"addresses", {{"network", "198.18.0.0/15"}}}}, ""},
        {{{"addresses", {{"network", "198.18.0.1/32"}, {"first", 7}}}}, ""},
        {{{"addresses", {{"network", "198.18.0.0"}}}}, ".addresses.network"},
        {{{"addresses", {{"network", "198.18.0.0/33"}}}}, ".addresses.network"},
        {{{"addresses", {{"network", "198.18.0.1/24"}}}}, ".addresses.network"},
        {{{"addresses", {{"network", "2001:2::/48"}}}}, ".addresses.network"},
        {{{"addresses", {{"network", "198.18.0.0/15"}, {"first", -1}}}}, ".addresses.first"},
        {{{"addresses", sliced(2, 10, 500)}}, ""},
        {{{"addresses", sliced(2, 10, 505)}}, ".addresses.slices.names"},
        {{{"addresses", {{"network", "198.18.0.0/15"}}}, {"aaaa", {{"n", 2}, {"m", 1}}}}, ".aaaa"},
        {{{"addresses", {{"network", "198.18.0.0/15"}}}, {"cached", {{"names", 1}, {"n", 2}, {"m", 1}, {"first", 5}}}},
         ""},
        {{{"addresses", {{"network", "198.18.0.0/15"}}}, {"cached", {{"names", 1}, {"n", 2}, {"m", 1}, {"trial", 5}}}},
         ".cached.first"},
        {{{"speed", 1}}, ".speed"},
    };
    for (const auto& [changed, field] : rows)
        EXPECT_EQ(rejected_field(asking(changed)), field.empty() ? "" : of + field) << changed;
}

TEST(Requests, QuestionsGoWithFewOtherMembers) {
    const std::string of = "params.forward.questions";
    const std::vector<Row> rows{
        {"/stamping", "every", ""},
        {"/stamping", "tagged", "params.tagged"},
        {"/forward/pattern", {{"kind", "poisson"}}, ""},
        {"/forward/pattern", {{"kind", "bursts"}, {"frames", 10}}, ""},
        {"/forward/pattern",
         {{"kind", "profile"}, {"segments", {{{"duration_ns", 1000}, {"from_fps", 1}, {"to_fps", 2}}}}},
         "params.forward.questions"},
        {"/forward/foreground", stream()["foreground"], "params.forward.foreground"},
        {"/forward/frames", json::array(), "params.forward.frames"},
        {"/forward/additional", json::array({additional()}), "params.forward.questions"},
        {"/forward/arrives_with", json::array({""}), "params.forward.arrives_with"},
        {"/capture", {{"path", "/c"}, {"first", 1}}, "params.forward.questions"},
        {"/pacing", {{"kind", "fill"}, {"destination", "02:00:00:00:00:09"}}, "params.forward.questions"},
        {"/forward/rate_fps", 4096 * 65536, ""},
        {"/forward/rate_fps", 4096 * 65536 + 1, "params.forward.questions"},
        {"/server", {{"port", "right"}, {"zone", "a.b"}}, ""},
        {"/server", {{"port", "left"}, {"zone", "a.b"}, {"ttl_s", 0}}, ""},
        {"/server", {{"port", "middle"}, {"zone", "a.b"}}, "params.server.port"},
        {"/server", {{"port", "right"}, {"zone", "a b"}}, "params.server.zone"},
        {"/server", {{"port", "right"}}, "params.server.zone"},
        {"/server", {{"zone", "a.b"}}, "params.server.port"},
    };
    for (const Row& row : rows) {
        json request = asking();
        request[json::json_pointer(row.pointer)] = row.value;
        EXPECT_EQ(rejected_field(request), row.field) << row.pointer << " " << row.value;
    }
    json reverse = asking();
    reverse["reverse"] = reverse["forward"];
    reverse.erase("forward");
    EXPECT_EQ(rejected_field(reverse), "params.reverse.questions");
    json alone = trial();
    alone.erase("forward");
    alone["server"] = {{"port", "right"}, {"zone", "a.b"}};
    EXPECT_EQ(rejected_field(alone), "");
}

TEST(Requests, AStreamSendsWithinTheTrial) {
    json request = trial();
    request["forward"].update({{"begin_ns", 400'000'000}, {"sends_ns", 600'000'000}});
    EXPECT_EQ(rejected_field(request), "");
    const TrialSpec spec = read_trial(Reader(request, "params"), 1518);
    EXPECT_EQ(spec.streams[0]->interval.begin_ns, 400'000'000U);
    EXPECT_EQ(spec.sends_ns(Direction::forward), 600'000'000U);
    EXPECT_EQ(spec.intended(Direction::forward), 600U);
    request["forward"]["sends_ns"] = 600'000'001;
    EXPECT_EQ(rejected_field(request), "params.forward.sends_ns");
    request["forward"]["sends_ns"] = 500'000'000;
    request["forward"]["then"] = {{"rate_fps", 1}, {"after_ns", 499'999'999}};
    EXPECT_EQ(rejected_field(request), "");
    request["forward"]["then"]["after_ns"] = 500'000'000;  // of its own beginning
    EXPECT_EQ(rejected_field(request), "params.forward.then.after_ns");
    request["forward"].erase("then");
    request["stamping"] = "tagged";
    request["tagged"] = {{"count", 100}, {"after_ns", 800'000'000}};  // of the trial's
    EXPECT_EQ(rejected_field(request), "");
    request["tagged"]["count"] = 101;
    EXPECT_EQ(rejected_field(request), "params.tagged");
}

TEST(Requests, EveryFrameHasANumber) {
    json request = trial();
    request["forward"]["rate_fps"] = 14'880'952;  // 2^40 of these take 73,887.2 s
    request["duration_ns"] = 73'887'000'000'000;
    EXPECT_EQ(rejected_field(request), "");
    request["duration_ns"] = 73'888'000'000'000;
    EXPECT_EQ(rejected_field(request), "params.duration_ns");
}

TEST(Requests, TaggedFramesMustFit) {
    json request = trial();
    request["stamping"] = "tagged";
    request["tagged"] = {{"count", 500}, {"after_ns", 500'000'000}};  // 1,000 frames in a second
    EXPECT_EQ(rejected_field(request), "");
    request["tagged"]["count"] = 501;
    EXPECT_EQ(rejected_field(request), "params.tagged");
    request["tagged"] = {{"count", 1}, {"after_ns", 1'000'000'000}};
    EXPECT_EQ(rejected_field(request), "params.tagged.after_ns");
    request["tagged"] = {{"count", 1}, {"after_ns", 0}};
    request["frame_timeout_ns"] = 1'000'000;
    EXPECT_EQ(rejected_field(request), "params.frame_timeout_ns");
}

TEST(Requests, DelaysAreWrittenWhereFramesAreStamped) {
    json request = trial();
    request["stamping"] = "every";
    request["delays_files"] = {{"forward", "/tmp/forward.npy"}};
    EXPECT_EQ(rejected_field(request), "");
    EXPECT_EQ(read_trial(Reader(request, "params"), 1518).delays_files[0], "/tmp/forward.npy");
    request["delays_files"] = {{"reverse", "/tmp/reverse.npy"}};
    EXPECT_EQ(rejected_field(request), "params.delays_files.reverse");
    request["delays_files"] = {{"forward", ""}};
    EXPECT_EQ(rejected_field(request), "params.delays_files.forward");
    request["delays_files"] = {{"left", "/tmp/left.npy"}};
    EXPECT_EQ(rejected_field(request), "params.delays_files.left");
}

TEST(Requests, PartsWithDelaysAreUnionsOfTheBinsOfLosses) {
    json request = trial();
    request["stamping"] = "every";
    request["delay_parts"] = 50;
    EXPECT_EQ(rejected_field(request), "");
    EXPECT_EQ(read_trial(Reader(request, "params"), 1518).delay_parts, 50U);
    for (const int parts : {0, 3, 125}) {
        request["delay_parts"] = parts;
        EXPECT_EQ(rejected_field(request), "params.delay_parts") << parts;
    }
}

// Tagged frames are counted at the rate at which they are sent.
TEST(Requests, TaggedFramesMustFitAfterAChangeOfTheRate) {
    json request = trial();
    request["stamping"] = "tagged";
    request["forward"]["then"] = {{"rate_fps", 10}, {"after_ns", 500'000'000}};
    request["tagged"] = {{"count", 105}, {"after_ns", 400'000'000}};  // 100 at 1,000 frames/s, then 5 at 10
    EXPECT_EQ(rejected_field(request), "");
    request["tagged"]["count"] = 106;
    EXPECT_EQ(rejected_field(request), "params.tagged");
}

TEST(Requests, APatternGoesWithOneRate) {
    json request = trial();
    request["forward"]["pattern"] = {{"kind", "poisson"}};
    request["forward"]["then"] = {{"rate_fps", 10}, {"after_ns", 500'000'000}};
    EXPECT_EQ(rejected_field(request), "params.forward.pattern");
}

// They are counted by the times of the pattern: one of ten bursts begins in the last tenth of the second.
TEST(Requests, TaggedFramesMustFitIntoThePattern) {
    json request = trial();
    request["stamping"] = "tagged";
    request["forward"]["pattern"] = {{"kind", "bursts"}, {"frames", 100}};
    request["tagged"] = {{"count", 100}, {"after_ns", 900'000'000}};
    EXPECT_EQ(rejected_field(request), "");
    request["tagged"]["after_ns"] = 900'000'001;
    EXPECT_EQ(rejected_field(request), "params.tagged");
}

TEST(Requests, ATrialNeedsADirection) {
    json request = trial();
    request.erase("forward");
    EXPECT_EQ(rejected_field(request), "params.forward");
}

TEST(Requests, NetworksAndVaryingDestinationsExcludeEachOther) {
    json request = trial();
    request["forward"]["networks"] = 2;
    request["forward"]["destination_address"] = {{"mode", "random"}, {"min", 0}, {"max", 9}};
    EXPECT_EQ(rejected_field(request), "params.forward.destination_address");
}

TEST(Requests, BothPortsOrNoneAreRings) {
    const json request{{"left", {{"port", "ring"}}}, {"right", {{"port", "null"}}}};
    EXPECT_THROW(read_open(Reader(request, "params")), Error);
}

// Four ports, and what is changed.
json four_ports(const json& changed = json::object()) {
    json open{{"ports", json::array()}, {"paths", {{{"from", "a"}, {"to", "b"}}, {{"from", "d"}, {"to", "a"}}}}};
    for (const char* name : {"a", "b", "c", "d"}) open["ports"].push_back({{"name", name}, {"port", "ring"}});
    open.merge_patch(changed);
    return open;
}

std::string rejected_open(const json& request) {
    try {
        read_open(Reader(request, "params"));
        return "";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), "bad_request");
        return error.field();
    }
}

TEST(Requests, PortsHaveNamesAndPaths) {
    const OpenRequest open = read_open(Reader(four_ports(), "params"));
    ASSERT_EQ(open.sides.size(), 4U);
    EXPECT_EQ(open.sides[3].port.side, "d");
    EXPECT_EQ(open.sides[0].port.ring_before, "d");
    ASSERT_EQ(open.paths.size(), 2U);
    EXPECT_EQ(open.paths[1].name, "d->a");
    EXPECT_EQ(open.paths[1].from, 3U);
    EXPECT_EQ(open.paths[1].to, 0U);
    EXPECT_FALSE(are_left_and_right(open.paths));
    EXPECT_TRUE(are_left_and_right(left_and_right()));
}

json other(const std::string& name, const char* from = "left", const char* to = "right") {
    return {{"name", name}, {"from", from}, {"to", to}};
}

json left_and_right_with(const json& others) {
    return {{"left", {{"port", "ring"}}}, {"right", {{"port", "ring"}}}, {"other_streams", others}};
}

TEST(Requests, OtherStreamsAreFurtherPaths) {
    const json others{other("voice"), other("voice.2"), other("b->a", "right", "left")};
    const OpenRequest open = read_open(Reader(left_and_right_with(others), "params"));
    ASSERT_EQ(open.paths.size(), 5U);
    EXPECT_TRUE(are_left_and_right(open.paths));
    EXPECT_EQ(open.paths[1].member(), "reverse");
    EXPECT_EQ(open.paths[2].member(), "other_streams.voice");
    EXPECT_EQ(open.paths[4].from, 1U);
    EXPECT_EQ(open.paths[4].to, 0U);
    const OpenRequest named =
        read_open(Reader(four_ports({{"other_streams", json::array({other("forward", "b", "c")})}}), "params"));
    ASSERT_EQ(named.paths.size(), 3U);
    EXPECT_FALSE(are_left_and_right(named.paths));
    EXPECT_EQ(named.paths[1].member(), "paths.d->a");
    EXPECT_EQ(named.paths[2].member(), "other_streams.forward");
}

TEST(Requests, OtherStreamsAreCheckedByTheTable) {
    json without_end = other("x"), with_rate = other("x"), many = json::array();
    without_end.erase("to");
    with_rate["rate_fps"] = 1;
    for (std::size_t i = 0; i < kMostPaths - 1; ++i) many.push_back(other(std::string("f").append(std::to_string(i))));
    const std::string name = "params.other_streams.0.name";
    const std::vector<std::pair<json, std::string>> rows{
        {json::array(), ""},
        {json::array({other("a_Z-0.9:>")}), ""},
        {json::array({other(std::string(64, 'x'))}), ""},
        {json::array({other(std::string(65, 'x'))}), name},
        {json::array({other("")}), name},
        {json::array({other("a b")}), name},
        {json::array({other("\u00e9")}), name},
        {json::array({other("forward")}), name},
        {json::array({other("x"), other("x")}), "params.other_streams.1.name"},
        {json::array({other("x", "left", "left")}), "params.other_streams.0.to"},
        {json::array({other("x", "left", "a")}), "params.other_streams.0.to"},
        {json::array({other("x", "a", "right")}), "params.other_streams.0.from"},
        {json::array({without_end}), "params.other_streams.0.to"},
        {json::array({with_rate}), "params.other_streams.0.rate_fps"},
        {many, "params.other_streams"},
        {"x", "params.other_streams"},
    };
    for (const auto& [others, field] : rows) EXPECT_EQ(rejected_open(left_and_right_with(others)), field) << others;
    many.erase(many.size() - 1);
    EXPECT_EQ(rejected_open(left_and_right_with(many)), "");
    EXPECT_EQ(rejected_open(four_ports({{"other_streams", json::array({other("a->b", "a", "b")})}})), name);
    EXPECT_EQ(rejected_open(four_ports({{"other_streams", json::array({other("b->a", "b", "a")})}})), "");
}

TEST(Requests, PathsAndOtherStreamsHaveNumbers) {
    json open{{"ports", json::array()}, {"paths", json::array()}, {"other_streams", json::array()}};
    const auto port = [](int number) { return std::string("p").append(std::to_string(number)); };
    for (int i = 0; i < 16; ++i) open["ports"].push_back({{"name", port(i)}, {"port", "ring"}});
    for (int i = 0; i < 16 * 15; ++i)
        open["paths"].push_back({{"from", port(i / 15)}, {"to", port((i / 15 + 1 + i % 15) % 16)}});
    EXPECT_EQ(rejected_open(open), "");
    for (std::size_t i = 240; i <= kMostPaths; ++i)
        open["other_streams"].push_back(other(std::string("x").append(std::to_string(i)), "p0", "p1"));
    EXPECT_EQ(rejected_open(open), "params.other_streams");
    open["paths"].erase(0);
    EXPECT_EQ(rejected_open(open), "");
}

TEST(Requests, ARefusedOtherStreamIsNamed) {
    for (const json& refused : {other("voice", "left", "a"), other("voice", "left", "left")}) {
        try {
            read_open(Reader(left_and_right_with(json::array({refused})), "params"));
            FAIL();
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find("stream voice"), std::string::npos) << error.what();
        }
    }
}

TEST(Requests, OtherStreamsHaveStreams) {
    const std::vector<Path> paths =
        read_open(Reader(left_and_right_with({other("voice"), other("video")}), "params")).paths;
    const auto rejected = [&](const json& request) -> std::string {
        try {
            read_trial(Reader(request, "params"), 1518, paths);
            return "";
        } catch (const Error& error) {
            return error.field();
        }
    };
    json request = trial();
    request["other_streams"] = {{"video", stream()}};
    const TrialSpec spec = read_trial(Reader(request, "params"), 1518, paths);
    EXPECT_EQ(spec.active(), (std::vector{Direction::forward, direction_at(3)}));
    json alone = request;
    alone.erase("forward");
    EXPECT_EQ(rejected(alone), "");
    alone["other_streams"] = json::object();
    EXPECT_EQ(rejected(alone), "params.other_streams");
    alone.erase("other_streams");
    EXPECT_EQ(rejected(alone), "params.forward");
    json wrong = request;
    wrong["other_streams"]["video"]["rate_fps"] = 0;
    EXPECT_EQ(rejected(wrong), "params.other_streams.video.rate_fps");
    wrong = request;
    wrong["other_streams"]["radio"] = stream();
    EXPECT_EQ(rejected(wrong), "params.other_streams.radio");
    wrong = request;
    wrong["voice"] = stream();
    EXPECT_EQ(rejected(wrong), "params.voice");
    EXPECT_EQ(rejected_field(request), "params.other_streams") << "none is open";
    request["stamping"] = "every";
    request["delays_files"] = {{"video", "/tmp/video.npy"}};
    EXPECT_EQ(rejected(request), "");
    EXPECT_EQ(read_trial(Reader(request, "params"), 1518, paths).delays_files[3], "/tmp/video.npy");
}

// Forward and reverse have them; what another stream has is as without connections.
TEST(Requests, OtherStreamsBelongToNoConnection) {
    const std::vector<Path> paths =
        read_open(Reader(left_and_right_with(json::array({other("voice")})), "params")).paths;
    json request = trial();
    request["forward"]["source_port"] = {{"mode", "random"}, {"min", 1024}, {"max", 65535}};
    request["connections"] = {{"count", 1000}};
    request["other_streams"]["voice"] = stream();
    request["other_streams"]["voice"]["networks"] = 2;
    const TrialSpec spec = read_trial(Reader(request, "params"), 1518, paths);
    EXPECT_NE(spec.connections_of(Direction::forward), nullptr);
    EXPECT_NE(spec.connections_of(Direction::reverse), nullptr);
    EXPECT_EQ(spec.connections_of(direction_at(2)), nullptr);
    EXPECT_EQ(spec.streams[2]->networks, 2U);
}

TEST(Requests, ConnectionsAreOfAPathAndOfItsWayBack) {
    const std::vector<Path> paths{{"c->a", 2, 0, Path::kNamed},
                                  {"a->b", 0, 1, Path::kNamed},
                                  {"b->a", 1, 0, Path::kNamed},
                                  {"voice", 1, 0, Path::kOtherStreams}};
    const auto read = [&](const char* initiator) {
        json request = trial();
        request["paths"] = {{initiator, request["forward"]}};
        request.erase("forward");
        request["paths"][initiator]["source_port"] = {{"mode", "random"}, {"min", 1024}, {"max", 65535}};
        request["connections"] = {{"count", 1000}, {"initiator", initiator}};
        return *read_trial(Reader(request, "params"), 1518, paths).connections;
    };
    EXPECT_EQ(read("a->b").replying, direction_at(2));
    EXPECT_EQ(read("b->a").replying, direction_at(1));
    EXPECT_EQ(read("c->a").replying, Direction::none);
    for (const char* unknown : {"voice", "forward"}) {
        json request = trial();
        request["paths"] = {{"a->b", request["forward"]}};
        request.erase("forward");
        request["connections"] = {{"count", 1}, {"initiator", unknown}};
        try {
            read_trial(Reader(request, "params"), 1518, paths);
            ADD_FAILURE() << unknown;
        } catch (const Error& error) {
            EXPECT_EQ(error.field(), "params.connections.initiator");
        }
    }
}

TEST(Requests, PortsAndPathsAreCheckedByTheTable) {
    const auto port = [](const std::string& name) { return json{{"name", name}, {"port", "ring"}}; };
    const auto path = [](const char* from, const char* to) { return json{{"from", from}, {"to", to}}; };
    json seventeen = json::array();
    for (int i = 0; i < 17; ++i) seventeen.push_back(port(std::string("p").append(std::to_string(i))));
    EXPECT_EQ(rejected_open(four_ports({{"ports", seventeen}})), "params.ports");
    EXPECT_EQ(rejected_open(four_ports({{"ports", {port("a")}}})), "params.ports");
    EXPECT_EQ(rejected_open(four_ports({{"ports", {port("a"), port("a")}}})), "params.ports.1.name");
    EXPECT_EQ(rejected_open(four_ports({{"ports", {port("a"), port("twelve_chars1")}}})), "params.ports.1.name");
    EXPECT_EQ(rejected_open(four_ports({{"ports", {port("a"), port("0")}}})), "params.ports.1.name");
    EXPECT_EQ(rejected_open(four_ports({{"paths", json::array()}})), "params.paths");
    EXPECT_EQ(rejected_open(four_ports({{"paths", {path("a", "x")}}})), "params.paths.0.to");
    EXPECT_EQ(rejected_open(four_ports({{"paths", {path("a", "a")}}})), "params.paths.0.to");
    EXPECT_EQ(rejected_open(four_ports({{"paths", {path("a", "b"), path("a", "b")}}})), "params.paths.1.to");
    EXPECT_EQ(rejected_open(four_ports({{"left", {{"port", "ring"}}}})), "params.left");
}

TEST(Requests, StreamsAreOfPaths) {
    const std::vector<Path> paths{
        {"a->b", 0, 1, Path::kNamed}, {"b->c", 1, 2, Path::kNamed}, {"c->a", 2, 0, Path::kNamed}};
    json request = trial();
    request.erase("forward");
    request["paths"] = {{"c->a", stream()}};
    const TrialSpec spec = read_trial(Reader(request, "params"), 1518, paths);
    EXPECT_EQ(spec.active(), std::vector<Direction>{direction_at(2)});
    for (const char* wrong : {"a->c", "forward"}) {
        json other = request;
        other["paths"][wrong] = stream();
        try {
            read_trial(Reader(other, "params"), 1518, paths);
            FAIL() << wrong;
        } catch (const Error& error) {
            EXPECT_EQ(error.field(), std::string("params.paths.") + wrong);
        }
    }
    request["paths"].clear();
    EXPECT_THROW(read_trial(Reader(request, "params"), 1518, paths), Error);
}

// UDP over IPv4 behind a VLAN tag, of which `fields` vary.
json connected_frame(const std::vector<json>& fields, const char* protocol = "11") {
    const std::string bytes = std::string(24, '0') + "8100000708004500005000004000" + std::string("0a") + protocol +
                              "0000c6120002c6130002c0200007003c0000";
    const json checksums = json::parse(R"([{"at": 28, "covers": [[18, 38]]},
                                           {"at": 44, "covers": [[30, 98]], "plus": 77, "zero_as_ones": true}])");
    return {{"size", 102}, {"bytes", bytes}, {"tag_at", 46}, {"checksums", checksums}, {"fields", fields}};
}
json combined(int at, const char* part, const json& changed = json::object()) {
    json field{{"bit", 8 * at}, {"bits", 16},      {"mode", "connection"},
               {"part", part},  {"first", "1024"}, {"count", "100"}};
    field.update(changed);
    return field;
}
json learned(int at, int bits, const char* part) {
    return {{"bit", 8 * at}, {"bits", bits}, {"mode", "learned"}, {"part", part}};
}

struct Connected {
    json connections;             // none: null
    std::vector<json> initiator;  // its frames
    std::vector<json> responder;
    const char* field;
};

TEST(Requests, DescribedFramesHaveThePartsOfTheirConnections) {
    const json port = combined(38, "source_port"), other_port = combined(38, "source_port", {{"count", "99"}}),
               address = combined(32, "source_address"), no_field = connected_frame({}),
               opened = connected_frame({port, address}),
               reply = connected_frame({learned(34, 32, "destination_address"), learned(38, 16, "source_port"),
                                        learned(40, 16, "destination_port")}),
               open{{"count", 1000}}, traffic{{"count", 1000}, {"use", "traffic"}},
               each{{"count", 1000}, {"use", "each"}}, at_random{{"count", 1000}, {"opening", "random"}};
    const std::vector<Connected> rows{
        {open, {opened}, {}, ""},
        {open, {opened, opened}, {}, ""},
        {traffic, {opened}, {reply}, ""},
        {traffic, {opened, no_field}, {reply, no_field}, ""},
        {each, {}, {reply}, ""},
        {at_random, {opened, no_field}, {}, ""},
        {open, {opened, no_field}, {}, "params.forward.frames.1.fields"},
        {each, {}, {reply, no_field}, "params.reverse.frames.1.fields"},
        {open, {no_field}, {}, "params.forward.frames.0.fields"},
        {traffic, {no_field}, {}, "params.forward.frames"},
        {nullptr, {opened}, {}, "params.forward.frames.0.fields.0"},
        {nullptr, {no_field}, {}, ""},
        {open, {opened, connected_frame({other_port, address})}, {}, "params.forward.frames.1.fields.0"},
        {open, {opened, connected_frame({port})}, {}, "params.forward.frames.1.fields"},
        {open, {reply}, {}, "params.forward.frames.0.fields.0.mode"},
        {traffic, {opened}, {opened}, "params.reverse.frames.0.fields.0.mode"},
        {traffic, {opened}, {connected_frame({address, learned(38, 16, "source_port")})}, ""},
        {{{"count", 1000}, {"use", "traffic"}, {"version", 6}}, {}, {reply}, "params.reverse.frames.0.fields.0.bits"},
        {{{"count", 10'001}}, {opened}, {}, "params.connections.count"},
        {{{"count", 10'000}}, {opened}, {}, ""},
        {open, {connected_frame({port}, "06")}, {}, "params.forward.frames.0.fields"},
    };
    for (const Connected& row : rows) {
        json request = trial();
        request.erase("forward");
        if (!row.connections.is_null()) request["connections"] = row.connections;
        if (!row.initiator.empty()) request["forward"] = {{"rate_fps", 1000}, {"frames", row.initiator}};
        if (!row.responder.empty()) request["reverse"] = {{"rate_fps", 1000}, {"frames", row.responder}};
        EXPECT_EQ(rejected_field(request), row.field) << request;
    }
}

TEST(Requests, PartsOfConnectionsAreReadByTheTable) {
    const std::string field = "params.forward.frames.0.fields.0.";
    const std::vector<std::pair<json, std::string>> rows{
        {combined(38, "source_port"), ""},
        {combined(38, "source_port", {{"first", "0"}, {"count", "65536"}}), ""},
        {combined(38, "source_port", {{"count", "64513"}}), field + "count"},
        {combined(38, "source_port", {{"count", "0"}}), field + "count"},
        {combined(38, "source_port", {{"first", "65536"}}), field + "first"},
        {combined(38, "source_port", {{"step", "1"}}), field + "step"},
        {combined(38, "source_port", {{"by", "flow"}}), field + "by"},
        {combined(38, "source_port", {{"bits", 8}}), field + "bits"},
        {combined(38, "port"), field + "part"},
        {combined(38, "source_port", {{"mode", "random"}}), field + "part"},
        {learned(38, 15, "source_port"), field + "bits"},
        {learned(34, 16, "destination_address"), field + "bits"},
        {learned(30, 32, "source_address"), field + "part"},
    };
    for (const auto& [read, rejected] : rows) {
        json request = trial();
        request["forward"] = {{"rate_fps", 50}, {"frames", std::vector{connected_frame({read})}}};
        request["connections"] = {{"count", 100}};
        EXPECT_EQ(rejected_field(request), rejected) << read;
    }
}

TEST(Requests, RangesAreFromFirstToLastWithinTheMask) {
    const auto with = [](json range) {
        json request = trial();
        request["forward"]["answers_for"] = {{"to", {{"ipv4", json::array({std::move(range)})}}}};
        return request;
    };
    const json whole{{"first", "198.19.0.0"}, {"last", "198.19.255.255"}, {"mask", "0.0.255.255"}};
    const TrialSpec spec = read_trial(Reader(with(whole), "params"), 1518);
    const AddressRanges& to = spec.streams[0]->answered_to;
    EXPECT_TRUE(to.contain(*parse_ipv4("198.19.7.7")));
    EXPECT_FALSE(to.contain(*parse_ipv4("198.18.7.7")));
    EXPECT_FALSE(spec.streams[0]->answered_from.contain(*parse_ipv4("198.19.7.7")));
    const std::string at = "params.forward.answers_for.to.ipv4.0.";
    EXPECT_EQ(rejected_field(with({{"first", "198.19.0.9"}})), "");
    EXPECT_EQ(rejected_field(with({{"last", "198.19.0.9"}})), at + "first");
    EXPECT_EQ(rejected_field(with({{"first", "198.19.0.9"}, {"last", "198.19.0.8"}})), at + "last");
    EXPECT_EQ(rejected_field(with({{"first", "198.19.0.0"}, {"last", "198.20.0.0"}, {"mask", "0.0.255.255"}})),
              at + "last");
    EXPECT_EQ(rejected_field(with({{"first", "2001:2::9"}})), at + "first");
}

TEST(Requests, AGatewayNeedsAnAddressToAskFrom) {
    const json request{{"left", {{"port", "null"}, {"gateway6", "2001:2::1"}}}, {"right", {{"port", "null"}}}};
    try {
        read_open(Reader(request, "params"));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.field(), "params.left.ipv6");
    }
}

TEST(Reader, TakesNoLargeNumberForANegativeOne) {
    const auto read = [](const json& value) -> std::optional<std::int64_t> {
        const json request{{"n", value}};
        try {
            return Reader(request, "").signed_integer("n", 10);
        } catch (const Error&) {
            return std::nullopt;
        }
    };
    EXPECT_EQ(read(json::parse("-4")), -4);
    EXPECT_EQ(read(json::parse("10")), 10);
    EXPECT_EQ(read(-4), -4);
    EXPECT_EQ(read(json::parse("18446744073709551612")), std::nullopt);
    EXPECT_EQ(read(json::parse("11")), std::nullopt);
    EXPECT_EQ(read(json::parse("-11")), std::nullopt);
    EXPECT_EQ(read(1.0), std::nullopt);
}

// File names and commands may be in any encoding.
TEST(RequestStream, AnswersWithTextThatIsNoUtf8) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const RequestStream stream(-1, ends[1]);
    stream.answering(7, [] { throw Error("port_away", "in use by caf\xE9", "left.port"); });
    std::array<char, 4096> text{};
    const ssize_t length = read(ends[0], text.data(), text.size());
    ASSERT_GT(length, 0);
    const json event = json::parse(text.data(), text.data() + length);
    EXPECT_EQ(event["event"], "error");
    EXPECT_EQ(event["id"], 7);
    EXPECT_EQ(event["message"], "in use by caf\xEF\xBF\xBD");
    for (const int end : ends) close(end);
}

}  // namespace
}  // namespace dutperf

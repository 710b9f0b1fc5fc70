// SPDX-License-Identifier: Apache-2.0
#include "server/question_requests.hpp"

#include <algorithm>
#include <charconv>

namespace dutperf {

namespace {

constexpr std::uint64_t kMostOfShare = 1000;

dns::EvenShare read_share(Reader& from) {
    dns::EvenShare share{.n = from.integer("n", {1, kMostOfShare}), .m = 0};
    share.m = from.integer("m", {0, kMostOfShare});
    if (share.m > share.n) from.fail("m", "must not be greater than n");
    return share;
}

dns::Zone read_zone(Reader& from) {
    const std::string text = from.text("zone");
    const auto zone = dns::parse_zone(text);
    if (!zone)
        from.fail("zone",
                  "must be 1 to 8 labels of lower-case letters, digits and hyphens, at most 64 characters, not '" +
                      text + "'");
    return *zone;
}

// An address, and what is behind its slash; nothing if that is no number.
struct Slashed {
    std::string address;
    std::optional<unsigned> length;
};
Slashed slashed(const std::string& text) {
    const std::size_t slash = std::min(text.find('/'), text.size());
    unsigned length = 0;
    const char* const end = text.data() + text.size();
    const bool is_number = slash < text.size() && std::from_chars(text.data() + slash + 1, end, length).ptr == end;
    return {.address = text.substr(0, slash), .length = is_number ? std::optional(length) : std::nullopt};
}

// RFC 6052 2.2.
dns::Embedding read_prefix(Reader& from) {
    const std::string text = from.text("prefix");
    const Slashed given = slashed(text);
    const auto address = parse_ipv6(given.address);
    const unsigned length = given.length.value_or(0);
    const bool is_allowed = std::ranges::find(dns::kEmbeddingLengths, length) != dns::kEmbeddingLengths.end();
    if (!address || !is_allowed)
        from.fail("prefix", "must be an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits, not '" + text + "'");
    const bool has_rest =
        std::any_of(address->begin() + length / 8, address->end(), [](auto byte) { return byte != 0; });
    if (has_rest || (*address)[dns::kReservedOctet] != 0)
        from.fail("prefix", "must have zeros behind its length and in bits 64 to 71, unlike '" + text + "'");
    return {.prefix = *address, .length = static_cast<std::uint8_t>(length)};
}

void read_ports(Reader& from, dns::Questions& questions) {
    auto ports = from.optional_object("source_ports");
    if (!ports) return;
    questions.first_port = static_cast<std::uint16_t>(ports->integer("first", {1024, 65535}));
    questions.ports = static_cast<std::uint16_t>(ports->integer("count", {1, 16384}));
    if (questions.first_port + questions.ports - 1 > 65535) ports->fail("count", "gives ports above 65535");
    ports->finish();
}

constexpr std::uint64_t kMostNames = std::uint64_t{1} << 30U;  // as many as a trial may ask for
constexpr std::uint64_t kMostAsked = std::uint64_t{1} << 53U;  // by all trials

void read_network(Reader& from, dns::AddressNames& names) {
    constexpr unsigned kBits = 32;
    const std::string text = from.text("network");
    const Slashed given = slashed(text);
    const auto address = parse_ipv4(given.address);
    const unsigned length = given.length.value_or(kBits + 1);
    names.size = std::uint64_t{1} << (kBits - std::min(length, kBits));
    names.network = address ? load_be32(address->data()) : 0;
    if (!address || length > kBits || names.network % names.size != 0)
        from.fail("network", "must be an IPv4 network, with zeros behind its length, not '" + text + "'");
}

std::optional<dns::AddressNames> read_addresses(Reader& questions) {
    auto from = questions.optional_object("addresses");
    if (!from) return std::nullopt;
    dns::AddressNames names;
    read_network(*from, names);
    names.first = from->integer("first", {0, kMostAsked}, 0);
    if (auto slices = from->optional_object("slices")) {
        names.slices = {.count = slices->integer("count", {1, kMostNames}),
                        .burst = slices->integer("burst", {1, kMostNames}),
                        .names = slices->integer("names", {1, kMostNames})};
        if (names.slices->names % names.slices->burst != 0) slices->fail("names", "must be a multiple of burst");
        slices->finish();
    }
    from->finish();
    return names;
}

std::optional<dns::CachedNames> read_cached(Reader& from, bool of_addresses) {
    auto cached = from.optional_object("cached");
    if (!cached) return std::nullopt;
    dns::CachedNames read{.names = cached->integer("names", {1, kMostNames}), .share = read_share(*cached)};
    if (of_addresses)
        read.first = cached->integer("first", {0, kMostAsked});
    else
        read.trial = static_cast<std::uint16_t>(cached->integer("trial", {0, 65535}));
    cached->finish();
    return read;
}

Ipv6 required_ipv6(Reader& from, const std::string& name) {
    const auto address = from.ipv6(name);
    if (!address) from.fail(name, "is missing");
    return *address;
}

}  // namespace

std::optional<dns::Questions> read_questions(Reader& stream, std::uint16_t max_frame_size) {
    auto from = stream.optional_object("questions");
    if (!from) return std::nullopt;
    for (const char* other : {"replay", "additional"}) {
        if (stream.has(other)) stream.fail("questions", std::string("goes without ") + other);
    }
    dns::Questions questions;
    questions.source = required_ipv6(*from, "source");
    questions.destination = required_ipv6(*from, "destination");
    read_ports(*from, questions);
    questions.destination_port = static_cast<std::uint16_t>(from->integer("destination_port", {1, 65535}, 53));
    questions.zone = read_zone(*from);
    questions.prefix = read_prefix(*from);
    if (auto aaaa = from->optional_object("aaaa")) {
        questions.aaaa = read_share(*aaaa);
        aaaa->finish();
    }
    questions.addresses = read_addresses(*from);
    if (questions.addresses && questions.aaaa.m != 0) from->fail("aaaa", "goes without addresses");
    questions.cached = read_cached(*from, questions.addresses.has_value());
    if (questions.frame_length() + kFcsSize > max_frame_size)
        from->fail("zone", "makes queries of " + std::to_string(questions.frame_length() + kFcsSize) +
                               " bytes, more than max_frame_size");
    from->finish();
    return questions;
}

std::optional<ServerSpec> read_server(Reader& params, const std::vector<Path>& paths) {
    auto server = params.optional_object("server");
    if (!server) return std::nullopt;
    if (!are_left_and_right(paths)) params.fail("server", "goes with the ports left and right only");
    ServerSpec spec;
    if (!server->has("port")) server->fail("port", "is missing");
    spec.port = server->text("port", {"left", "right"}, "right") == "left" ? 0 : 1;
    spec.zone = read_zone(*server);
    spec.ttl_s = static_cast<std::uint32_t>(server->integer("ttl_s", {0, 0x7FFFFFFF}, 3600));  // RFC 2181 8
    server->finish();
    return spec;
}

void check_questions(const std::vector<Path>& paths, const TrialSpec& spec) {
    for (const Direction direction : spec.active()) {
        const auto& stream = spec.streams[index_of(direction)];
        if (!stream->questions) continue;
        std::string field = "params.";
        field.append(paths[index_of(direction)].member()).append(".questions");
        const auto refuse = [&](const std::string& why) {
            throw Error("bad_request", std::string(field).append(" ").append(why), field);
        };
        if (!are_left_and_right(paths) || direction != Direction::forward) refuse("goes with forward only");
        if (spec.connections) refuse("goes without connections");
        if (spec.fill) refuse("goes without pacing by fill");
        if (spec.capture) refuse("goes without capture");
        if (std::holds_alternative<Profile>(stream->pattern)) refuse("goes without a profile of rates");
        if (spec.stamping == Stamping::tagged) refuse("goes with stamping none or every");
        const auto& names = stream->questions->addresses;
        if (names && spec.server) refuse("has names of addresses, which another server knows: goes without server");
        if (names && names->slices && spec.intended(direction) > names->slices->count * names->slices->names)
            refuse("has slices for " + std::to_string(names->slices->count * names->slices->names) + " names only");
        if (spec.intended(direction) > stream->questions->most())
            refuse("has ports and IDs for " + std::to_string(stream->questions->most()) + " queries, not for " +
                   std::to_string(spec.intended(direction)) + ": take more source ports");
    }
}

}  // namespace dutperf

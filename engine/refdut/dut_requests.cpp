// SPDX-License-Identifier: Apache-2.0
#include "refdut/dut_requests.hpp"

#include <map>

namespace dutperf {

namespace {

constexpr std::uint64_t kLargestExact = (std::uint64_t{1} << 53U) - 1;  // as a JSON number
constexpr std::uint64_t kBillion = 1'000'000'000;
constexpr std::uint64_t kLongestNs = 3600 * kBillion;
constexpr std::uint64_t kMostConnections = 100'000'000;  // 7.4 GB
constexpr std::uint64_t kMostCached = 100'000'000;       // names: some 25 GB

template <class Address>
Prefix<Address> checked(const std::optional<Prefix<Address>>& prefix, const std::string& text, const Reader& reader,
                        const std::string& name) {
    if (!prefix)
        reader.fail(name, "must be a prefix such as " +
                              std::string(sizeof(Address) == 4 ? "198.18.0.0/16" : "2001:2::/48") + ", not '" + text +
                              "'");
    return *prefix;
}

void read_routes(Reader& reader, std::size_t exit, Routes& routes) {
    for (const std::string& text : reader.texts("routes4"))
        routes.ipv4.add(checked(parse_prefix4(text), text, reader, "routes4"), exit);
    for (const std::string& text : reader.texts("routes6"))
        routes.ipv6.add(checked(parse_prefix6(text), text, reader, "routes6"), exit);
}

Prefix<Ipv4> read_prefix4(Reader& reader, const std::string& name) {
    const std::string text = reader.text(name);
    return checked(parse_prefix4(text), text, reader, name);
}

Prefix<Ipv6> read_prefix6(Reader& reader, const std::string& name) {
    const std::string text = reader.text(name);
    return checked(parse_prefix6(text), text, reader, name);
}

// Those of a tunnel lead to an end of it, which several addresses may have.
std::vector<ExplicitMapping> read_mappings(Reader& reader, bool must_fit) {
    std::vector<ExplicitMapping> mappings;
    for (Reader mapping : reader.objects("mappings")) {
        const ExplicitMapping read{read_prefix4(mapping, "ipv4"), read_prefix6(mapping, "ipv6")};
        if (must_fit && !read.fits())
            mapping.fail("ipv6", "leaves fewer bits than the IPv4 address has after its prefix");
        mapping.finish();
        mappings.push_back(read);
    }
    return mappings;
}

PortSharing read_sharing(Reader& rule, std::size_t embedded_psid) {
    const auto offset = static_cast<std::uint8_t>(rule.integer("psid_offset", {0, 15}, 6));
    const bool has_psid = rule.has("psid");
    if (has_psid && embedded_psid != 0) rule.fail("psid", "has no effect: the PSID is in the embedded address bits");
    const auto length = static_cast<std::uint8_t>(has_psid ? rule.integer("psid_length", {1, 16})
                                                           : static_cast<std::uint64_t>(embedded_psid));
    if (length != 0 && offset + length > 16)
        rule.fail(has_psid ? "psid_length" : "ea_length", "leaves no bits: psid_offset and a PSID have 16 at most");
    return {.offset = offset, .psid_length = length};
}

MapRule read_rule(Reader rule) {
    MapRule read{.ipv4 = read_prefix4(rule, "ipv4"), .ipv6 = read_prefix6(rule, "ipv6"), .sharing = {}, .psid = {}};
    read.ea_length = static_cast<std::uint8_t>(rule.integer("ea_length", {0, 48}, 0));
    const std::size_t embedded_psid = read.ipv4.length + read.ea_length - read.address_bits();
    if (embedded_psid > 16 || read.ipv6.length + read.ea_length > kBits<Ipv6>)
        rule.fail("ea_length",
                  "does not fit: behind the IPv4 prefix are the rest of the address and a PSID of 16 bits");
    read.sharing = read_sharing(rule, embedded_psid);
    if (rule.has("psid"))
        read.psid = static_cast<std::uint16_t>(rule.integer("psid", {0, (1U << read.sharing.psid_length) - 1U}));
    rule.finish();
    return read;
}

MapRules read_rules(Reader& reader, bool must_be_addresses) {
    MapRules rules;
    for (const Reader& one : reader.objects("rules")) {
        const MapRule rule = read_rule(one);
        if (must_be_addresses && rule.address_bits() != kBits<Ipv4>)
            one.fail("ea_length", "leaves bits of the IPv4 address that no IPv6 address has");
        if (!rules.add(rule)) one.fail("ipv4", "has another rule that shares its ports in another way");
    }
    return rules;
}

// RFC 6052: addresses of IPv4 hosts as the inside of a NAT64 sees them.
Prefix<Ipv6> read_translation_prefix(Reader& reader) {
    const std::string text = reader.text("prefix");
    const auto prefix = checked(parse_prefix6(text), text, reader, "prefix");
    if (!is_translation_prefix(prefix)) reader.fail("prefix", "must be 32, 40, 48, 56, 64 or 96 bits long");
    return prefix;
}

Translator read_translator(Reader reader) {
    const std::vector<ExplicitMapping> mappings = read_mappings(reader, true);
    MapRules rules = read_rules(reader, true);
    std::optional<Prefix<Ipv6>> prefix;
    if (reader.has("prefix")) prefix = read_translation_prefix(reader);
    static const std::map<std::string, ZeroChecksum> choices{{"compute", ZeroChecksum::compute},
                                                             {"drop", ZeroChecksum::drop}};
    const ZeroChecksum zero = choices.at(reader.text("udp_zero_checksum", {"compute", "drop"}, "compute"));
    reader.finish();
    return {AddressMap(mappings, prefix, std::move(rules)), zero};
}

Tunnel read_tunnel(Reader reader) {
    const bool over_ipv6 = reader.text("over", {"ipv4", "ipv6"}, "ipv6") == "ipv6";
    const std::vector<ExplicitMapping> mappings = read_mappings(reader, false);
    MapRules rules = read_rules(reader, false);
    if (!over_ipv6 && !rules.is_empty()) reader.fail("rules", "are for tunnels over ipv6; 6rd has mappings");
    reader.finish();
    return {AddressMap(mappings, std::nullopt, std::move(rules)), over_ipv6};
}

// Packets to the DUT's own addresses are answered or dropped, and counted nowhere.
void check_ends(const DutRequest& request, const Reader& params) {
    for (const SideRequest& side : request.sides) {
        const Host& host = side.host.host;
        const std::size_t* four = host.ipv4 ? request.routes.ipv4.find(*host.ipv4) : nullptr;
        const std::size_t* six = host.ipv6 ? request.routes.ipv6.find(*host.ipv6) : nullptr;
        for (const std::size_t* exit : {four, six}) {
            if (exit != nullptr && *exit == kTunnelExit)
                params.fail("tunnel", "ends at the address of a port: it needs an address of its own");
        }
    }
}

NatRequest read_nat(Reader reader, Routes& routes) {
    NatRequest request;
    for (const std::string& text : reader.texts("pool")) {
        const auto address = parse_ipv4(text);
        if (!address) reader.fail("pool", "must have IPv4 addresses, not '" + text + "'");
        request.pool.addresses.push_back(*address);
        routes.ipv4.add({.address = *address, .length = kBits<Ipv4>}, kNatExit);
    }
    if (request.pool.addresses.empty()) reader.fail("pool", "has no address");
    request.pool.first_port = static_cast<std::uint16_t>(reader.integer("first_port", {1, 65535}, 1024));
    request.pool.last_port =
        static_cast<std::uint16_t>(reader.integer("last_port", {request.pool.first_port, 65535}, 65535));
    if (reader.has("prefix")) {
        const Prefix<Ipv6> prefix = read_translation_prefix(reader);
        routes.ipv6.add(prefix, kNatExit);
        request.translator.emplace(AddressMap({}, prefix), ZeroChecksum::compute);
    }
    reader.finish();
    return request;
}

ConnectionProperties read_connections(Reader reader) {
    static const std::map<std::string, WhenFull> policies{{"refuse", WhenFull::refuse},
                                                          {"evict", WhenFull::evict},
                                                          {"evict_unanswered", WhenFull::evict_unanswered},
                                                          {"pass", WhenFull::pass}};
    static const std::map<std::string, PortChoice> choices{{"next", PortChoice::next},
                                                           {"preserve", PortChoice::preserve}};
    const auto number = [&](const std::string& name, std::uint64_t most, std::uint32_t otherwise) {
        return static_cast<std::uint32_t>(reader.integer(name, {0, most}, otherwise));
    };
    ConnectionProperties properties;
    properties.capacity = static_cast<std::uint32_t>(reader.integer("capacity", {1, kMostConnections}, 262'144));
    properties.when_full =
        policies.at(reader.text("when_full", {"refuse", "evict", "evict_unanswered", "pass"}, "refuse"));
    properties.evict_count = static_cast<std::uint32_t>(reader.integer("evict_count", {1, kMostConnections}, 1));
    properties.timeout_ns = reader.integer("timeout_ns", {0, 24 * kLongestNs}, 0);
    properties.establishment_cps = reader.integer("establishment_cps", {0, kBillion}, 0);
    properties.establishment_queue = number("establishment_queue", 1'000'000, 1000);
    properties.deletion_cps = reader.integer("deletion_cps", {0, kBillion}, 0);
    properties.ports = choices.at(reader.text("ports", {"next", "preserve"}, "next"));
    properties.remap_every = number("remap_every", kBillion, 0);
    properties.remap_after_ms = number("remap_after_ms", 3'600'000, 0);
    reader.finish();
    return properties;
}

Dns64Request read_dns64(Reader reader, const std::array<SideRequest, 2>& sides) {
    Dns64Request request;
    const std::string text = reader.text("server");
    const auto four = parse_ipv4(text);
    const auto six = parse_ipv6(text);
    if (!four && !six) reader.fail("server", "must be an IPv4 or IPv6 address, not '" + text + "'");
    request.server = four ? ip_of(*four) : ip_of(*six);
    request.prefix = read_translation_prefix(reader);
    reader.finish();
    const auto& [left, right] = sides;
    if (!left.host.host.ipv6) reader.fail("server", "has no effect without left.ipv6, the address that clients ask");
    if (four ? !right.host.host.ipv4 : !right.host.host.ipv6)
        reader.fail("server", std::string("needs right.") + (four ? "ipv4" : "ipv6") + ", from which it is asked");
    return request;
}

Dns64Properties read_dns64_properties(Reader reader) {
    Dns64Properties properties;
    properties.cache_names = reader.integer("cache_names", {0, kMostCached}, 0);
    properties.pending = static_cast<std::uint32_t>(reader.integer("pending", {1, PendingQueries::kMost}, 65'536));
    if (auto wrong = reader.optional_object("wrong")) {
        for (std::size_t i = 0; i < kWrongs; ++i)
            properties.wrong_every[i] = wrong->integer(kWrongNames[i], {0, kLargestExact}, 0);
        wrong->finish();
    }
    reader.finish();
    return properties;
}

Choice read_choice(Reader& choice) {
    return {.ratio_ppb = static_cast<std::uint32_t>(choice.integer("ratio_ppb", {0, kBillion}, 0)),
            .every = choice.integer("every", {0, kLargestExact}, 0)};
}

Choice read_choice(Reader& params, const std::string& name) {
    auto choice = params.optional_object(name);
    if (!choice) return {};
    const Choice read = read_choice(*choice);
    choice->finish();
    return read;
}

}  // namespace

DutRequest read_dut(Reader params) {
    DutRequest request;
    request.max_frame_size = static_cast<std::uint16_t>(params.integer("max_frame_size", {1518, kMaxFrameSize}, 1522));
    for (const auto& [side, name] : {std::pair{std::size_t{0}, "left"}, std::pair{std::size_t{1}, "right"}}) {
        request.sides[side] = read_side(params.object(name), name);
        request.sides[side].port.max_frame_size = request.max_frame_size;
        Reader routes = params.object(std::string("to_") + name);
        read_routes(routes, side, request.routes);
        routes.finish();
    }
    for (SideRequest& side : request.sides) side.port.reach = reach_of(request.sides);
    if (auto translator = params.optional_object("translator")) {
        read_routes(*translator, kTranslatorExit, request.routes);
        request.translator.emplace(read_translator(*translator));
    }
    if (auto tunnel = params.optional_object("tunnel")) {
        read_routes(*tunnel, kTunnelExit, request.routes);
        request.tunnel.emplace(read_tunnel(*tunnel));
        check_ends(request, params);
    }
    if (auto nat = params.optional_object("nat")) {
        request.nat.emplace(read_nat(*nat, request.routes));
        if (request.tunnel && request.nat->translator)
            params.fail("nat", "has a prefix: beside a tunnel it is a NAT44 (DS-Lite)");
    }
    if (auto dns64 = params.optional_object("dns64")) {
        const bool forwards = request.translator || request.tunnel || request.nat || !request.routes.ipv4.is_empty() ||
                              !request.routes.ipv6.is_empty();
        if (forwards)
            params.fail("dns64", "makes a DUT that forwards nothing: leave out routes, translator, tunnel and nat");
        request.dns64.emplace(read_dns64(*dns64, request.sides));
    }
    request.memory = read_memory(params);
    request.buffers = static_cast<unsigned>(params.integer("buffers", {1023, 1'048'575}, 16383));
    request.shares_core = params.flag("shares_core");
    params.finish();
    return request;
}

Properties read_properties(Reader params, DutKind kind) {
    Properties properties{
        .seed = params.integer("seed", {0, kLargestExact}, 0),
        .capacity_fps = params.integer("capacity_fps", {0, kBillion}, 0),
        .queue_frames = static_cast<std::uint32_t>(params.integer("queue_frames", {0, 1'000'000}, 1000)),
        .cores = static_cast<std::uint32_t>(params.integer("cores", {1, 64}, 1)),
        .flow_cache = static_cast<std::uint32_t>(params.integer("flow_cache", {0, 1'000'000}, 1024)),
        .flow_miss_ns = params.integer("flow_miss_ns", {0, kLongestNs}, 0),
        .delay_ns = params.integer("delay_ns", {0, kLongestNs}, 0)};
    if (auto jitter = params.optional_object("jitter")) {
        static const std::map<std::string, Jitter> kinds{
            {"none", Jitter::none}, {"normal", Jitter::normal}, {"exponential", Jitter::exponential}};
        properties.jitter = kinds.at(jitter->text("kind", {"none", "normal", "exponential"}, "none"));
        properties.jitter_ns = jitter->integer("ns", {0, kLongestNs});
        jitter->finish();
    }
    if (auto extra = params.optional_object("extra_delay")) {
        properties.extra_delay = read_choice(*extra);
        properties.extra_delay_ns = extra->integer("ns", {0, kLongestNs});
        extra->finish();
    }
    properties.loss = read_choice(params, "loss");
    properties.duplicate = read_choice(params, "duplicate");
    properties.reorder = read_choice(params, "reorder");
    properties.bit_error = read_choice(params, "bit_error");
    if (auto nat = params.optional_object("nat")) {
        if (!kind.has_nat) params.fail("nat", "has no effect: the DUT was opened without a NAT");
        properties.nat.emplace(read_connections(*nat));
    }
    if (auto dns64 = params.optional_object("dns64")) {
        if (!kind.has_dns64) params.fail("dns64", "has no effect: the DUT was opened without a DNS64");
        properties.dns64.emplace(read_dns64_properties(*dns64));
    }
    params.finish();
    return properties;
}

Disturbance read_disturbance(Reader params) {
    const Disturbance disturbance{.after_ns = params.integer("after_ns", {0, kLongestNs}, 0),
                                  .duration_ns = params.integer("duration_ns", {1, kLongestNs})};
    params.finish();
    return disturbance;
}

}  // namespace dutperf

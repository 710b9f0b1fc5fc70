// SPDX-License-Identifier: Apache-2.0
#include "server/described_requests.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "frame/dissect.hpp"
#include "port/port_hosts.hpp"
#include "trial/ptp_message.hpp"

namespace dutperf {

namespace {

constexpr std::uint64_t kMostFlows = 1'000'000, kMostFields = 64, kMostChecksums = 16;
constexpr std::size_t kMostValues = 65536;

std::optional<std::uint8_t> hex_digit(char digit) {
    if (digit >= '0' && digit <= '9') return static_cast<std::uint8_t>(digit - '0');
    if (digit >= 'a' && digit <= 'f') return static_cast<std::uint8_t>(digit - 'a' + 10);
    return std::nullopt;
}

// Up to 128 bits, as digits in a string: no JSON number holds them.
Number128 number_of(const Reader& field, const std::string& name, const std::string& text) {
    constexpr std::size_t kMostDigits = 39;
    if (text.empty() || text.size() > kMostDigits ||
        !std::ranges::all_of(text, [](char digit) { return digit >= '0' && digit <= '9'; }))
        field.fail(name, "must be a number of 128 bits in digits, not '" + text + "'");
    Number128 number = 0;
    for (const char digit : text) {
        const Number128 before = number;
        number = number * 10 + static_cast<unsigned>(digit - '0');
        if (number / 10 != before) field.fail(name, "must be below 2^128");
    }
    return number;
}

Number128 read_number(Reader& field, const std::string& name, Number128 otherwise) {
    return field.has(name) ? number_of(field, name, field.text(name)) : otherwise;
}

const std::map<std::string, FieldSource>& sources() {
    static const std::map<std::string, FieldSource> sources{{"connection", FieldSource::connection},
                                                            {"learned", FieldSource::learned}};
    return sources;
}

void read_part(Reader& field, const std::string& mode, VaryingBits& bits) {
    static const std::map<std::string, ConnectionPart> parts{
        {"source_port", ConnectionPart::source_port},
        {"destination_port", ConnectionPart::destination_port},
        {"source_address", ConnectionPart::source_address},
        {"destination_address", ConnectionPart::destination_address}};
    const std::string part = field.text("part");
    bits.source = sources().at(mode);
    if (!parts.contains(part))
        field.fail("part", "must be one of source_port, destination_port, source_address, destination_address, not '" +
                               part + "'");
    bits.part = parts.at(part);
    if (bits.by_flow) field.fail("by", "must be frame: a flow has no connection");
    const bool learns = bits.source == FieldSource::learned;
    if (learns && bits.part == ConnectionPart::source_address)
        field.fail("part", "must be another one: the state table has no address of the Responder");
    if (learns && bits.part == ConnectionPart::destination_address) {
        if (bits.bits != 32 && bits.bits != 128) field.fail("bits", "must be 32 or 128, as of an IP address");
    } else if (bits.bits != 16) {
        field.fail("bits", "must be 16");
    }
}

// How many numbers a part of combinations has.
void read_combined(Reader& field, VaryingBits& bits) {
    bits.mode = FieldMode::fixed;
    bits.first = number_of(field, "first", field.text("first"));
    bits.count = number_of(field, "count", field.text("count"));
    if (bits.first > bits.mask()) field.fail("first", "has more than 16 bits");
    if (bits.count == 0 || bits.count > bits.mask() + 1 - bits.first)
        field.fail("count", "must be 1 or more, and first + count - 1 must have 16 bits at most");
}

void read_values(Reader& field, const std::string& mode, VaryingBits& bits) {
    static const std::map<std::string, FieldMode> modes{
        {"increasing", FieldMode::increasing}, {"decreasing", FieldMode::decreasing}, {"random", FieldMode::random}};
    if (mode != "list" && !modes.contains(mode))
        field.fail("mode",
                   "must be one of increasing, decreasing, random, list, connection, learned, not '" + mode + "'");
    if (mode == "list") {
        for (const std::string& value : field.texts("values")) bits.values.push_back(number_of(field, "values", value));
        if (bits.values.empty() || bits.values.size() > kMostValues)
            field.fail("values", "must be 1 to " + std::to_string(kMostValues) + " numbers");
    } else {
        bits.mode = modes.at(mode);
        bits.first = read_number(field, "first", 0);
        bits.step = read_number(field, "step", 1);
        bits.count = read_number(field, "count", 0);
    }
    const auto fits = [&](Number128 number) { return (number & ~bits.mask()) == 0; };
    if (!fits(bits.first)) field.fail("first", "has more than " + std::to_string(bits.bits) + " bits");
    if (!std::ranges::all_of(bits.values, fits))
        field.fail("values", "must have no more than " + std::to_string(bits.bits) + " bits");
    // a random number of all bits of the field is cut to it
    if (bits.count == bits.mask() + 1) bits.count = 0;
}

VaryingBits read_field(Reader field) {
    VaryingBits bits;
    bits.bit = static_cast<std::uint32_t>(field.integer("bit", {0, 8 * kMaxFrameSize}));
    bits.bits = static_cast<std::uint32_t>(field.integer("bits", {1, 128}));
    bits.by_flow = field.text("by", {"frame", "flow"}, "frame") == "flow";
    const std::string mode = field.text("mode");
    if (sources().contains(mode)) {
        read_part(field, mode, bits);
        if (bits.source == FieldSource::connection) read_combined(field, bits);
    } else {
        read_values(field, mode, bits);
    }
    field.finish();
    return bits;
}

DescribedChecksum read_checksum(Reader checksum) {
    DescribedChecksum sum{.at = static_cast<std::uint16_t>(checksum.integer("at", {0, kMaxFrameSize})),
                          .covers = {},
                          .plus = static_cast<std::uint32_t>(checksum.integer("plus", {0, 0xFFFFFFFF}, 0)),
                          .zero_as_ones = checksum.flag("zero_as_ones")};
    for (const auto& [from, to] : checksum.pairs("covers", {0, kMaxFrameSize})) sum.covers.push_back({from, to});
    checksum.finish();
    return sum;
}

// The receiver must find the tag in the frame as it is sent, or every frame would count as lost.
Dissected found_in(const std::vector<std::uint8_t>& sent, const DescribedFrame& frame) {
    const auto from_end = static_cast<std::uint16_t>(frame.length() - frame.tag_at);
    Dissected found = dissect(sent.data(), sent.size(), {&from_end, 1});
    if (found.tag != sent.data() + frame.tag_at) found.tag = nullptr;
    return found;
}

DescribedFrame read_described_frame(Reader frame, std::uint16_t max_frame_size) {
    DescribedFrame described;
    described.size = static_cast<std::uint16_t>(frame.integer("size", {kMinEthernetSize, max_frame_size}));
    described.head = bytes_of(frame, "bytes", frame.text("bytes"));
    described.tag_at = static_cast<std::uint16_t>(frame.integer("tag_at", {0, kMaxFrameSize}));
    described.source_mac_of_port = frame.text("source_mac", {"port", "given"}, "port") == "port";
    described.destination = read_next_hop(frame);
    described.host = frame.integer("host", {0, kMostHosts - 1}, 0);
    for (Reader& checksum : frame.objects("checksums")) described.checksums.push_back(read_checksum(checksum));
    for (Reader& field : frame.objects("fields")) described.fields.push_back(read_field(field));
    if (described.checksums.size() > kMostChecksums) frame.fail("checksums", "has more than 16 entries");
    if (described.fields.size() > kMostFields) frame.fail("fields", "has more than 64 entries");
    described.flows = static_cast<std::uint32_t>(frame.integer("flows", {1, kMostFlows}, 1));
    described.flows_at_random = frame.text("flow_order", {"in_turn", "random"}, "in_turn") == "random";
    const bool says_checked = frame.has("checked");
    described.checked = !says_checked || frame.flag("checked");
    described.arrives_with = read_vlan_tags(frame);
    if (frame.has("arrives_encapsulated")) described.arrives_encapsulated = frame.flag("arrives_encapsulated");
    frame.finish();
    if (const std::string wrong = described.contradiction(); !wrong.empty()) {
        const auto end = wrong.find(' ');
        frame.fail(wrong.substr(0, end), wrong.substr(end + 1));
    }
    const std::vector<std::uint8_t> sent = DescribedTemplate(described, {}).first_frame();
    const Dissected found = found_in(sent, described);
    if (found.tag == nullptr)
        frame.fail("tag_at",
                   "is where no receiver would find the tag: in a fragment, an ICMP error, or behind another tag");
    if (described.is_connected() && (!found.behind_udp || found.source.size() == 0))
        frame.fail("fields", "have a part of connections, which needs the tag directly behind UDP over IP");
    if (!says_checked) described.checked = found.intact;
    return described;
}

// Each kind must have frames, or it would have no share of the buffers.
void read_order(Reader& stream, DescribedStream& described) {
    const std::size_t kinds = described.kinds.size();
    if (stream.has("order") && stream.has("shares")) stream.fail("shares", "goes without order");
    for (const std::uint64_t kind : stream.integers("order", {0, kinds - 1}))
        described.order.push_back(static_cast<std::uint8_t>(kind));
    for (const std::uint64_t share : stream.integers("shares", {1, kLongestOrder}))
        described.shares.push_back(static_cast<std::uint32_t>(share));
    stream.require_entries("order", {1, kLongestOrder});
    stream.require_entries("shares", {1, kMostKinds});
    if (described.order.empty() && described.shares.empty()) {
        described.order.resize(kinds);
        std::iota(described.order.begin(), described.order.end(), std::uint8_t{0});
    }
    if (!described.shares.empty() && described.shares.size() != kinds)
        stream.fail("shares", "must have as many entries as frames");
    if (std::accumulate(described.shares.begin(), described.shares.end(), std::uint64_t{0}) > kLongestOrder)
        stream.fail("shares", "must have a sum of at most 65536");
    for (std::size_t kind = 0; described.shares.empty() && kind < kinds; ++kind) {
        if (std::ranges::find(described.order, kind) == described.order.end())
            stream.fail("order", "leaves out " + std::to_string(kind));
    }
}

void read_streams(Reader& stream, DescribedStream& described) {
    for (const std::uint64_t number : stream.integers("streams", {0, kMostKinds - 1}))
        described.streams.push_back(static_cast<std::uint8_t>(number));
    stream.require_entries("streams", {1, kMostKinds});
    if (!described.streams.empty() && described.streams.size() != described.kinds.size())
        stream.fail("streams", "must have as many entries as frames");
}

// Checks the fields of one stream that hold a part of connections.
class ConnectionFieldsCheck {
public:
    // `path`: of the stream in the request. `connections`: nullptr without any.
    ConnectionFieldsCheck(const DescribedStream& stream, std::string path, const ConnectionSpec* connections,
                          bool initiates)
        : stream_(&stream), path_(std::move(path)), connections_(connections), initiates_(initiates) {}

    void check() {
        for (std::size_t kind = 0; kind < stream_->kinds.size(); ++kind) check_kind(kind);
        if (connections_ != nullptr && first_kind_.empty())
            fail("frames", "must have fields of mode " + std::string(initiates_ ? "connection" : "learned"));
    }

private:
    using Part = std::pair<FieldSource, ConnectionPart>;

    void check_kind(std::size_t kind) {
        const DescribedFrame& frame = stream_->kinds[kind];
        const std::string fields = "frames." + std::to_string(kind) + ".fields";
        std::map<Part, FieldSpec> parts;
        for (std::size_t i = 0; i < frame.fields.size(); ++i) {
            const VaryingBits& field = frame.fields[i];
            if (field.source == FieldSource::number) continue;
            const std::string at = fields + "." + std::to_string(i);
            check_part(field, at);
            const FieldSpec combined = field.source == FieldSource::connection ? field.combined() : FieldSpec{};
            parts[{field.source, field.part}] = combined;
            const auto [known, is_new] = all_.try_emplace({field.source, field.part}, combined);
            if (known->second != combined) fail(at, "has another range than the same part elsewhere in the stream");
        }
        if (parts.empty()) {
            if (connections_ != nullptr && connections_->has_a_frame_each())
                fail(fields, "have no part of connections, but each frame of this trial belongs to a connection");
            return;
        }
        if (first_kind_.empty()) first_kind_ = parts;
        if (parts != first_kind_) fail(fields, "have not the same parts of connections as those of other frames");
    }

    void check_part(const VaryingBits& field, const std::string& at) const {
        if (connections_ == nullptr) fail(at, "has a part of connections, but the trial has none");
        const bool learns = field.source == FieldSource::learned;
        if (initiates_ && learns) fail(at + ".mode", "learned is for replies: these are the Initiator's frames");
        if (!initiates_ && !learns && field.part != ConnectionPart::source_address)
            fail(at + ".mode", "must be learned in replies, but for their source_address");
        const std::uint32_t bits = connections_->ipv6 ? 128 : 32;
        if (learns && field.part == ConnectionPart::destination_address && field.bits != bits)
            fail(at + ".bits", "must be " + std::to_string(bits) + ": see connections.version");
    }

    [[noreturn]] void fail(const std::string& name, const std::string& message) const {
        throw Error("bad_request", path_ + "." + name + " " + message, path_ + "." + name);
    }

    const DescribedStream* stream_;
    std::string path_;
    const ConnectionSpec* connections_;
    bool initiates_;
    std::map<Part, FieldSpec> all_, first_kind_;
};

}  // namespace

void check_connection_fields(const DescribedStream& stream, const std::string& path, const ConnectionSpec* connections,
                             bool initiates) {
    ConnectionFieldsCheck(stream, path, connections, initiates).check();
}

std::vector<std::uint8_t> bytes_of(const Reader& reader, const std::string& name, const std::string& text) {
    std::vector<std::uint8_t> bytes(text.size() / 2);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto digit = hex_digit(text[i]);
        if (!digit || text.size() % 2 != 0) reader.fail(name, "must be pairs of the digits 0-9 and a-f");
        bytes[i / 2] = static_cast<std::uint8_t>(i % 2 == 0 ? *digit << 4U : bytes[i / 2] | *digit);
    }
    return bytes;
}

NextHop read_next_hop(Reader& frame) {
    return frame.choice<NextHop>(
        "destination_mac", {{"given", NextHop::given}, {"next_hop4", NextHop::ipv4}, {"next_hop6", NextHop::ipv6}});
}

std::vector<VlanTags> read_vlan_tags(Reader& reader) {
    constexpr std::size_t kMostTags = 8, kMostChoices = 128;
    const std::string name = "arrives_with";
    std::vector<VlanTags> choices;
    for (const std::string& text : reader.texts(name)) {
        const std::vector<std::uint8_t> bytes = bytes_of(reader, name, text);
        VlanTags& tags = choices.emplace_back();
        for (std::size_t at = 0; at + ethernet::kVlanTagSize <= bytes.size(); at += ethernet::kVlanTagSize) {
            tags.push_back(vlan_tag_at(bytes.data(), at));
            if (bytes[at + 2] >> 4U != 0) reader.fail(name, "must have tags of priority 0");
        }
        if (bytes.size() % ethernet::kVlanTagSize != 0 || tags.size() > kMostTags)
            reader.fail(name, "must have up to 8 tags of four bytes each");
    }
    if (reader.has(name) && (choices.empty() || choices.size() > kMostChoices))
        reader.fail(name, "must have 1 to 128 entries");
    return choices;
}

std::vector<DescribedFrame> read_ptp(Reader& stream, std::uint16_t max_frame_size) {
    std::vector<DescribedFrame> messages;
    for (Reader& message : stream.objects("ptp")) {
        const std::string at = "ptp." + std::to_string(messages.size());
        const DescribedFrame& ptp = messages.emplace_back(read_described_frame(message, max_frame_size));
        if (!ptp.fields.empty()) stream.fail(at + ".fields", "must be empty: the message is always the same");
        if (ptp.host != 0) stream.fail(at + ".host", "must be that of the port");
        if (ptp.tag_at < ethernet::kSize + PtpMessage::kSize)
            stream.fail(at + ".tag_at", "leaves no room for a message");
    }
    stream.require_entries("ptp", {1, kMostKinds});
    return messages;
}

std::optional<DescribedStream> read_described(Reader& stream, std::uint16_t max_frame_size) {
    if (!stream.has("frames")) return std::nullopt;
    DescribedStream described;
    for (Reader& frame : stream.objects("frames"))
        described.kinds.push_back(read_described_frame(frame, max_frame_size));
    if (described.kinds.empty() || described.kinds.size() > kMostKinds)
        stream.fail("frames", "must be 1 to " + std::to_string(kMostKinds) + " kinds of frames");
    read_order(stream, described);
    read_streams(stream, described);
    return described;
}

}  // namespace dutperf

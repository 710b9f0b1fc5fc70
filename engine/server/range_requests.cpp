// SPDX-License-Identifier: Apache-2.0
#include "server/range_requests.hpp"

#include <optional>
#include <vector>

namespace dutperf {

namespace {

constexpr std::size_t kMostRanges = 1024;  // of an IP version at one end of a path

// `read` reads an address.
template <class Address, class Read>
std::vector<AddressRange<Address>> ranges_of(Reader& of, const std::string& version, Read read) {
    std::vector<AddressRange<Address>> ranges;
    Address all{};
    all.fill(0xFF);
    for (Reader& given : of.objects(version)) {
        const std::optional<Address> first = read(given, "first");
        if (!first) given.fail("first", "is missing");
        const AddressRange<Address> range{
            .first = *first, .last = read(given, "last").value_or(*first), .mask = read(given, "mask").value_or(all)};
        if (!range.contains(range.first) || !range.contains(range.last))
            given.fail("last", "must come after first, and differ from it in bits of the mask only");
        given.finish();
        ranges.push_back(range);
    }
    if (ranges.size() > kMostRanges) of.fail(version, "has more than " + std::to_string(kMostRanges) + " ranges");
    return ranges;
}

}  // namespace

AddressRanges read_ranges(Reader& of, const std::string& name) {
    auto ranges = of.optional_object(name);
    if (!ranges) return {};
    AddressRanges read{
        .ipv4 = ranges_of<Ipv4>(*ranges, "ipv4", [](Reader& from, const char* which) { return from.ipv4(which); }),
        .ipv6 = ranges_of<Ipv6>(*ranges, "ipv6", [](Reader& from, const char* which) { return from.ipv6(which); })};
    ranges->finish();
    return read;
}

}  // namespace dutperf

// SPDX-License-Identifier: Apache-2.0
// A packet socket beside the driver of a kernel port, for frames with time stamps. The kernel says when each left and
// arrived (SO_TIMESTAMPING): when its driver had it for sending, and when its driver handed it up. What the tester's
// loops do before and after is not in these times.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "frame/address.hpp"

namespace dutperf {

// Who stamps: the kernel, in ns of CLOCK_REALTIME since 1970, or the card, in ns of its own clock.
enum class StampedBy : std::uint8_t { kernel, card };

// Throws Error "port_unavailable" for the field "params.stamps" if the interface's driver does not let the kernel stamp
// frames.
void require_stamps(const std::string& interface, const std::string& side);

class StampSocket {
public:
    // Receives only test frames with a time stamp in their tag, which is behind headers or so many bytes before the
    // frame's end. The driver lets the kernel stamp frames (require_stamps), or the card's stamps are switched on
    // (card_stamping.hpp). Throws Error "port_unavailable" for the field "params.stamps" if the kernel refuses.
    StampSocket(StampedBy by, unsigned interface_index, const std::string& side,
                std::span<const std::uint16_t> tags_from_end);
    ~StampSocket();
    StampSocket(const StampSocket&) = delete;
    StampSocket& operator=(const StampSocket&) = delete;

    // Whether a frame from here to there gets the stamp of its leaving: sends an ARP probe for 0.0.0.0, which
    // no station answers, learns from or counts as dropped, and waits. To be called before the others are sent.
    bool stamps_frames(const Mac& from, const Mac& to);
    // Sends a frame that gets a stamp. Returns whether the kernel took it; it may have dropped it then, as one from the
    // driver, and the interface's counters say so. Several senders may call it at once.
    bool send(const std::uint8_t* frame, std::size_t length);

    // Visits a frame and its time.
    using Visit = std::function<void(std::span<const std::uint8_t>, std::int64_t)>;
    // Visits some of those that have left, then some of those that have arrived, since the last call. Returns whether
    // there may be more. For one thread at a time.
    bool take(const Visit& left, const Visit& arrived);

private:
    StampSocket(StampedBy by, const std::string& side);
    void require(bool done) const;
    void set(int level, int name, const void* value, unsigned size) const;
    bool take_some(int flags, const Visit& visit);

    struct Room;  // for the frames of one call

    [[nodiscard]] std::optional<std::int64_t> stamp_of(const msghdr& message) const;

    StampedBy by_;
    int fd_;
    std::string side_;
    std::unique_ptr<Room> room_;
};

}  // namespace dutperf

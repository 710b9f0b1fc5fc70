// SPDX-License-Identifier: Apache-2.0
#include "server/request_stream.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <new>
#include <stdexcept>

#include "platform/ending.hpp"
#include "server/events.hpp"

namespace dutperf {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestLine = 1U << 23U;

}  // namespace

RequestStream::Input RequestStream::wait(int timeout_ms) {
    std::array wanted{pollfd{.fd = input_, .events = POLLIN, .revents = 0},
                      pollfd{.fd = ending_event(), .events = POLLIN, .revents = 0}};
    const int ready = poll(wanted.data(), wanted.size(), timeout_ms);
    if (ending()) return Input::end;
    if (ready <= 0) return Input::nothing;
    std::array<char, 65536> chunk{};
    const ssize_t length = read(input_, chunk.data(), chunk.size());
    if (length <= 0) return Input::end;
    buffer_.append(chunk.data(), static_cast<std::size_t>(length));
    return Input::some;
}

void RequestStream::answer_all(const Dispatch& dispatch) {
    for (std::string line; take_line(line);) answer(line, dispatch);
}

bool RequestStream::take_line(std::string& line) {
    const std::size_t end = buffer_.find('\n');
    if (end == std::string::npos) {
        if (buffer_.size() > kLongestLine) buffer_.clear();
        return false;
    }
    line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return true;
}

void RequestStream::answer(const std::string& line, const Dispatch& dispatch) const {
    if (line.find_first_not_of(" \t\r") == std::string::npos) return;
    const json parsed = json::parse(line, nullptr, false);
    if (!parsed.is_object()) return write(error_event(Error("bad_json", "the line is no JSON object")), nullptr);
    const json id = parsed.contains("id") && parsed["id"].is_number_unsigned() ? parsed["id"] : json(nullptr);
    answering(id, [&] {
        Reader request(parsed, "");
        request.integer("id", {0, (std::uint64_t{1} << 53U) - 1});
        dispatch(id, request.text("method"), request);
    });
}

bool RequestStream::answering(const json& id, const std::function<void()>& what) const {
    try {
        what();
        return true;
    } catch (const Error& error) {
        write(error_event(error), id);
    } catch (const std::bad_alloc&) {
        write(error_event(Error("no_memory", "there is not enough memory for it")), id);
    } catch (const std::exception& error) {
        write(error_event(Error("internal", error.what())), id);
    }
    return false;
}

void RequestStream::write(json event, const json& id) const {
    event["id"] = id;
    // text of the operating system need not be UTF-8, which dump() would throw for
    const std::string line = event.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    for (std::size_t written = 0; written < line.size();) {
        const ssize_t count = ::write(output_, line.data() + written, line.size() - written);
        if (count <= 0) return;  // the client is gone: the end of input follows
        written += static_cast<std::size_t>(count);
    }
}

}  // namespace dutperf

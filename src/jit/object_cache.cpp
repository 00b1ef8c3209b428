#include "jit/object_cache.h"

#include <llvm/Support/xxhash.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/format.h"

namespace fxjit::inline v0::jit {
namespace {

// magic, then the sizes of key and object and a checksum of both, then key and object.
constexpr char kMagic[8] = {'f', 'x', 'j', 'i', 't', 'o', 'b', '1'};
struct Header {
  char magic[8];
  uint64_t key_bytes, object_bytes, checksum;
};

uint64_t hash(const std::string& bytes) {
  return llvm::xxh3_64bits(llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Failure failure(const std::string& folder, const std::string& why) {
  return Failure{support::concat("the object cache ", folder, " is not used: ", why)};
}

}  // namespace

Result<ObjectCache> ObjectCache::open(const std::string& folder) {
  struct stat info;
  if (::stat(folder.c_str(), &info) != 0) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!error) std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
    if (error || ::stat(folder.c_str(), &info) != 0) return failure(folder, "it cannot be made: " + error.message());
  }
  if (!S_ISDIR(info.st_mode)) return failure(folder, "it is no folder");
  if (info.st_uid != ::geteuid() && info.st_uid != 0) return failure(folder, "it belongs to another user");
  if (info.st_mode & (S_IWGRP | S_IWOTH)) {
    return failure(folder, "other users may write there, and what is loaded is run (chmod go-w)");
  }
  return ObjectCache(folder);
}

std::string ObjectCache::path_of(const std::string& key) const {
  char name[32];
  std::snprintf(name, sizeof name, "/%016llx.fxo", static_cast<unsigned long long>(hash(key)));
  return folder_ + name;
}

std::optional<std::string> ObjectCache::load(const std::string& key) const {
  const std::string file = read_file(path_of(key));
  Header h;
  if (file.size() < sizeof h) return std::nullopt;
  std::memcpy(&h, file.data(), sizeof h);
  const size_t rest = file.size() - sizeof h;
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0 || h.key_bytes != key.size() || h.key_bytes > rest ||
      h.object_bytes != rest - h.key_bytes || file.compare(sizeof h, key.size(), key) != 0 ||
      h.checksum != hash(file.substr(sizeof h))) {
    return std::nullopt;
  }
  return file.substr(sizeof h + key.size());
}

Result<void> ObjectCache::store(const std::string& key, const std::string& object) const {
  static std::atomic<unsigned> number{0};
  const std::string path = path_of(key);
  const std::string beside = support::concat(path, ".", ::getpid(), ".", number.fetch_add(1));
  const std::string body = key + object;
  Header h{{}, key.size(), object.size(), hash(body)};
  std::memcpy(h.magic, kMagic, sizeof kMagic);
  std::ofstream out(beside, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&h), sizeof h);
  out << body;
  out.close();
  if (out && std::rename(beside.c_str(), path.c_str()) == 0) return {};
  const std::string why = std::strerror(errno);
  std::remove(beside.c_str());
  return failure(folder_, "writing " + path + ": " + why);
}

}  // namespace fxjit::inline v0::jit

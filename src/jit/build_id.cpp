#include <elf.h>
#include <link.h>

#include <cstring>

#include "fxjit/version.h"
#include "jit/kernel_cache.h"

namespace fxjit::inline v0::jit {
namespace {

std::string hex(const unsigned char* bytes, size_t count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

// The GNU build id in a note segment, or empty.
std::string find_id(const unsigned char* notes, size_t size) {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes, sizeof(header));
    const size_t name = (header.n_namesz + 3) & ~size_t{3}, value = (header.n_descsz + 3) & ~size_t{3};
    const size_t whole = sizeof(header) + name + value;
    if (whole > size) break;
    const unsigned char* body = notes + sizeof(header);
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 && std::memcmp(body, "GNU", 4) == 0) {
      return hex(body + name, header.n_descsz);
    }
    notes += whole;
    size -= whole;
  }
  return {};
}

bool contains(const dl_phdr_info& object, uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address >= begin && address < begin + segment.p_memsz) return true;
  }
  return false;
}

int visit(dl_phdr_info* object, size_t, void* result) {
  if (!contains(*object, reinterpret_cast<uintptr_t>(&visit))) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    std::string id = find_id(notes, segment.p_memsz);
    if (!id.empty()) *static_cast<std::string*>(result) = std::move(id);
  }
  return 1;
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(&visit, &found);
    return found.empty() ? std::string("version " FXJIT_VERSION) : found;
  }();
  return id;
}

}  // namespace fxjit::inline v0::jit

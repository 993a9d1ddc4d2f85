#include "topology/hwloc_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/hwloc_document_internal.h"
#include "topology/hwloc_objects.h"

namespace tessera::topology {
namespace hwloc_document {

int Reporter::line_of(size_t offset) const {
  const auto end = bytes_.begin() + static_cast<ptrdiff_t>(std::min(offset, bytes_.size()));
  return 1 + static_cast<int>(std::count(bytes_.begin(), end, '\n'));
}

int Reporter::line(pugi::xml_node at) const {
  return line_of(static_cast<size_t>(std::max<ptrdiff_t>(at.offset_debug(), 0)));
}

Status Reporter::error(pugi::xml_node at, const std::string& reason) const {
  return error_at(static_cast<size_t>(std::max<ptrdiff_t>(at.offset_debug(), 0)), reason);
}

Status Reporter::error_at(size_t offset, const std::string& reason) const {
  return Status::error(Code::kInvalidArgument, "{}:{}: {}", name_, line_of(offset), reason);
}

namespace {

// The major number of the schema; an error for what hwloc 2 does not read.
Result<int> schema_of(pugi::xml_node topology, const Reporter& report) {
  const pugi::xml_attribute version = topology.attribute("version");
  if (!version) return 1;  // hwloc 1 wrote none
  const std::string_view text = version.value();
  const size_t dot = text.find('.');
  const auto major = parse_number(text.substr(0, dot), 1000);
  const auto minor =
      dot == std::string_view::npos ? std::nullopt : parse_number(text.substr(dot + 1), 1000);
  if (!major || !minor)
    return report.error(topology, fmt::format("\"{}\" is no schema version", printable(text)));
  if (*major < 1 || *major > 2)
    return report.error(
        topology,
        fmt::format("schema version {} is not supported, only 1.x and 2.x are; \"lstopo -i "
                    "THIS --export-xml-flags v2 NEW.xml\" of hwloc 3 converts it",
                    text));
  return static_cast<int>(*major);
}

class Normaliser {
 public:
  Normaliser(std::string_view bytes, const std::string& name) : report_(bytes, name) {}

  Result<HwlocDocument> run(std::string_view bytes) {
    pugi::xml_document in;
    const auto parsed = in.load_buffer(bytes.data(), bytes.size());
    if (!parsed)
      return report_.error_at(static_cast<size_t>(std::max<ptrdiff_t>(parsed.offset, 0)),
                              fmt::format("not well-formed XML: {}", parsed.description()));
    const pugi::xml_node topology = in.document_element();
    if (std::string_view(topology.name()) != "topology")
      return report_.error(topology,
                           fmt::format("the document is a <{}>, not a <topology> of hwloc",
                                       printable(topology.name())));
    const Result<int> schema = schema_of(topology, report_);
    if (!schema.ok()) return schema.status();

    pugi::xml_document out;
    pugi::xml_node result = out.append_child("topology");
    if (schema.value() == 2) result.append_attribute("version") = "2.0";
    Objects objects(schema.value(), report_);
    if (Status status = objects.copy(topology, result); !status.ok()) return status;
    if (Status status = copy_matrices(topology, result, objects); !status.ok()) return status;

    StringWriter writer;
    out.save(writer, "", pugi::format_raw | pugi::format_no_declaration, pugi::encoding_utf8);
    return HwlocDocument{std::move(writer.text), std::move(report_.warnings)};
  }

 private:
  struct StringWriter : pugi::xml_writer {
    void write(const void* data, size_t size) override {
      text.append(static_cast<const char*>(data), size);
    }
    std::string text;
  };

  Status copy_matrices(pugi::xml_node in, pugi::xml_node out, const Objects& objects) {
    for (pugi::xml_node child : in.children()) {
      const std::string_view name = child.name();
      if (name != "distances2" && name != "distances2hetero") continue;
      Status status = copy_distances(child, out, objects.by_os(), objects.by_gp(), report_);
      if (!status.ok()) return status;
    }
    return {};
  }

  Reporter report_;
};

}  // namespace
}  // namespace hwloc_document

Result<HwlocDocument> normalise_hwloc_document(std::string_view bytes, const std::string& name) {
  if (bytes.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return Status::error(Code::kInvalidArgument, "{}: the file is empty", name);
  return hwloc_document::Normaliser(bytes, name).run(bytes);
}

}  // namespace tessera::topology

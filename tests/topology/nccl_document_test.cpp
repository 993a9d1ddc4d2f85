// Documents that are no topology file, or too much of one: one error that names the place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "topology/nccl_form.h"
#include "topology/nccl_xml.h"
#include "topology/support/files.h"
#include "topology/xml_source.h"

namespace tessera::topology {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::parse_error;
using testing::parsed;
using ::testing::StartsWith;

namespace fs = std::filesystem;

TEST(NcclDocument, PrologCommentsQuotesAndLineEndsMakeNoDifference) {
  const Machine plain = parsed("<system version=\"1\"><cpu numaid=\"0\" affinity=\"f\"/></system>");
  for (const char* text :
       {"\xEF\xBB\xBF<system version='1'><cpu numaid='0' affinity='f'/></system>",
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<system version='1'><cpu numaid='0' "
        "affinity='f'/></system>",
        "\r\n<!-- a -->\r\n<system\r\n version='1'>\r\n<!-- < b > --><cpu numaid=\"0\"\r\n"
        "\taffinity='f' ></cpu>\r\n</system>\r\n<!-- c -->\r\n",
        "\n\n<system version = '1' ><cpu affinity = 'f'  numaid= '0'/> <!-- d --> </system >"}) {
    const Machine m = parsed(text);
    EXPECT_EQ(difference(plain, m), "") << text;
    EXPECT_EQ(m.warnings.size(), 0U) << testing::warnings_of(m);
  }
}

TEST(NcclDocument, WarningsNameTheLineWithAnyLineEnds) {
  for (const char* end : {"\n", "\r\n", "\r"}) {
    const std::string e = end;
    const Machine m = parsed("\xEF\xBB\xBF<!--" + e + "-->" + e + "<system version='1'>" + e +
                             "<cpu numaid='0'" + e + "affinity='f'><pci" + e + "/></cpu></system>");
    ASSERT_EQ(m.warnings.size(), 2U);
    EXPECT_EQ(m.warnings[0].line, 5);
  }
}

TEST(NcclDocument, WhatIsNoSuchDocumentIsOneErrorWithItsPlace) {
  EXPECT_EQ(parse_error(""), "test.xml: the file is empty");
  EXPECT_EQ(parse_error(" \n\t"), "test.xml: the file is empty");
  EXPECT_THAT(parse_error("hello"),
              AllOf(StartsWith("test.xml:1: "), HasSubstr("no XML document")));
  EXPECT_THAT(parse_error("<!-- only -->"), HasSubstr("no element <system>"));
  EXPECT_EQ(parse_error("\n<topology version='2.0'/>"),
            "test.xml:2: the root element is \"topology\", expected \"system\"");
  EXPECT_THAT(parse_error("<system version='1'/>\n<system version='1'/>"),
              StartsWith("test.xml:2: a second root element"));
  EXPECT_THAT(parse_error("<system version='1'/>\nend"), HasSubstr("outside of any element"));
  EXPECT_THAT(
      parse_error("<system version='3'/>"),
      StartsWith("test.xml:1: element \"system\", attribute \"version\": version 3 is not"));
  EXPECT_THAT(parse_error("\n{\"json\": 1}"), HasSubstr("no XML document"));
}

TEST(NcclDocument, MalformedMarkupNamesLineElementAndAttribute) {
  EXPECT_THAT(parse_error("<system version='1'>\n<cpu numaid='0'>\n"),
              AllOf(StartsWith("test.xml:2: no well-formed XML"), HasSubstr("truncated"),
                    HasSubstr("\"cpu\" in line 2")));
  EXPECT_THAT(parse_error("<system version='1'>\n<cpu numaid='0' affinity='ff"),
              AllOf(StartsWith("test.xml:2: "), HasSubstr("\"cpu\" in line 2"),
                    HasSubstr("attribute \"affinity\"")));
  EXPECT_THAT(parse_error("<system version='1'>\n<cpu>\n</pci>\n</system>"),
              AllOf(StartsWith("test.xml:3: "), HasSubstr("mismatch")));
  EXPECT_THAT(parse_error("<system version=1/>"), HasSubstr("test.xml:1: "));
  EXPECT_THAT(parse_error("<system version='1'"), HasSubstr("test.xml:1: "));
  EXPECT_THAT(parse_error("<"), HasSubstr("test.xml:1: "));
}

TEST(NcclDocument, BinaryDataAndOtherEncodingsAreRefused) {
  EXPECT_THAT(parse_error(std::string("<system version='1'/>\n\0", 23)),
              StartsWith("test.xml:2: a zero byte"));
  EXPECT_THAT(parse_error(std::string("\xff\xfe<\0s\0", 6)), HasSubstr("encoding"));
}

TEST(NcclDocument, ADocumentTypeIsRefused) {
  EXPECT_EQ(parse_error("<!DOCTYPE system [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]>\n"
                        "<system version='&b;'/>"),
            "test.xml:1: a document type (DOCTYPE) is not allowed in topology files");
}

TEST(NcclDocument, LimitsAreStated) {
  const std::string value(kMostValueBytes, 'f');
  EXPECT_EQ(parsed("<system version='1' x='" + value + "'/>").others[0].text.size(), value.size());
  EXPECT_EQ(parse_error("<system version='1'>\n<cpu affinity='f" + value + "'/></system>"),
            "test.xml:2: element \"cpu\", attribute \"affinity\": longer than 1 MiB, the limit");
  std::string many;
  for (size_t i = 0; i < kMostAttributes; ++i) many += fmt::format(" a{}=''", i);
  EXPECT_EQ(parse_error("<system version='1'><cpu" + many + " numaid='0'/></system>"),
            "test.xml:1: element \"cpu\": more than 64 attributes, the limit");
  EXPECT_THAT(parse_error("<system version='1'>" + std::string(kMostXmlBytes, ' ') + "</system>"),
              HasSubstr("larger than 64 MiB"));
  std::string elements = "<system version='1'>";
  for (size_t i = 0; i < kMostElements; ++i) elements += "<a/>";
  EXPECT_THAT(parse_error(elements + "</system>"), HasSubstr("more than 500000 elements"));
}

std::string nested(size_t depth) {
  std::string text = "<system version='1'><cpu numaid='0' affinity='f'>";
  for (size_t i = 0; i < depth; ++i) text += "<pci busid='01:00.0' class='0x060400'>";
  for (size_t i = 0; i < depth; ++i) text += "</pci>";
  return text + "</cpu></system>";
}

TEST(NcclDocument, DeepNestingIsReadOrALimitError) {
  const Machine m = parsed(nested(2000));
  ASSERT_EQ(m.pcis.size(), 2000U);
  EXPECT_EQ(m.pcis[1999].parent, 1998);
  EXPECT_EQ(difference(m, parsed(write_nccl_xml(m))), "");
  EXPECT_EQ(parsed(nested(9000)).pcis.size(), 9000U);
  EXPECT_THAT(parse_error(nested(11'000)), HasSubstr("nested more than 10000 deep"));
  EXPECT_THAT(parse_error(nested(400'000)), HasSubstr("nested more than 10000 deep"));
}

TEST(NcclDocument, WideAndLongDocumentsAreReadWhole) {
  std::string wide =
      "<system version='1'><cpu numaid='0' affinity='f'>"
      "<pci busid='ffff:01:00.0' class='0x060400'>";
  for (int i = 0; i < 10'000; ++i)
    wide += fmt::format("<pci busid='{:04x}:01:00.0' class='0x020000'/>\n", i);
  std::string many = "<system version='1'><cpu numaid='0' affinity='f'>\n";
  for (int i = 0; i < 20'000; ++i)
    many += fmt::format(
        "<pci busid='{:04x}:01:00.0' class='0x030200' link_speed='' link_width='0'><gpu dev='{}'>"
        "<nvlink target='fffffff:ffff:ff' count='1'/></gpu></pci>\n",
        i, i);
  Machine machine;
  machine = parsed(wide + "</pci></cpu></system>");
  EXPECT_EQ(machine.pcis.size(), 10'001U);
  machine = parsed(many + "</cpu></system>");
  EXPECT_EQ(machine.gpus.size(), 20'000U);
  EXPECT_EQ(machine.warnings.size(), 1001U);  // the last one counts those left out
  EXPECT_THAT(machine.warnings.back().text, HasSubstr("more warnings left out"));
  EXPECT_EQ(difference(machine, parsed(write_nccl_xml(machine))), "");
}

class NcclFileAccess : public ::testing::Test {
 protected:
  NcclFileAccess() : folder_(fs::temp_directory_path() / fmt::format("nccl_xml_{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~NcclFileAccess() override { fs::remove_all(folder_); }

  static std::string read_error(const std::string& path) {
    const Result<Machine> machine = read_nccl_xml(path);
    if (machine.ok()) return "ok";
    EXPECT_EQ(machine.status().code(), Code::kSystem);
    return machine.status().message();
  }

  const fs::path folder_;
};

TEST_F(NcclFileAccess, WhatCannotBeReadIsNamedWithItsReason) {
  EXPECT_EQ(read_error(folder_ / "none.xml"),
            (folder_ / "none.xml").string() + ": cannot read this file: No such file or directory");
  EXPECT_THAT(read_error(folder_), HasSubstr("Is a directory"));
  EXPECT_THAT(read_error("/dev/null"), HasSubstr("no regular file"));
  EXPECT_THAT(read_error(std::string("/tmp/") + std::string(5000, 'a')), HasSubstr("too long"));
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(read_error(folder_ / "pipe"), HasSubstr("no regular file"));
  if (::geteuid() == 0) return;  // may read everything
  std::ofstream(folder_ / "secret.xml") << "<system/>";
  fs::permissions(folder_ / "secret.xml", fs::perms::none);
  EXPECT_THAT(read_error(folder_ / "secret.xml"), HasSubstr("Permission denied"));
}

TEST_F(NcclFileAccess, AnEmptyFileAndOneThatIsTooLargeAreErrors) {
  std::ofstream(folder_ / "empty.xml").close();
  EXPECT_THAT(read_nccl_xml(folder_ / "empty.xml").status().message(), HasSubstr("is empty"));
  fs::resize_file(folder_ / "empty.xml", kMostXmlBytes + 1);
  EXPECT_THAT(read_nccl_xml(folder_ / "empty.xml").status().message(), HasSubstr("64 MiB"));
}

TEST_F(NcclFileAccess, ASavedMachineReadsBackAndNothingElseIsLeft) {
  const Machine m = testing::random_machine(7);
  const std::string path = folder_ / "machine.xml";
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(save_nccl_xml(m, path).ok());
    const Result<Machine> read = read_nccl_xml(path);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(difference(in_nccl_form(m), read.value()), "");
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(NcclFileAccess, WhatCannotBeWrittenIsNamedAndLeavesNothing) {
  const Machine m;
  EXPECT_EQ(
      save_nccl_xml(m, folder_ / "no/such.xml").message(),
      (folder_ / "no/such.xml").string() + ": cannot write this file: No such file or directory");
  fs::create_directories(folder_ / "taken" / "inside");
  EXPECT_THAT(save_nccl_xml(m, folder_ / "taken").message(), HasSubstr("cannot write this file"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST(NcclRoundTrip, MachinesMadeAtRandomReadBackAsWritten) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const Machine m = testing::random_machine(seed);
    const std::string text = write_nccl_xml(m);
    ASSERT_EQ(difference(in_nccl_form(m), parsed(text)), "") << "seed " << seed;
  }
}

TEST(NcclRoundTrip, TheCorpusReadsBackAsWritten) {
  for (const auto& entry : fs::directory_iterator(testing::corpus_folder())) {
    const Result<Machine> m = read_nccl_xml(entry.path());
    if (!m.ok()) continue;
    const std::string text = write_nccl_xml(m.value());
    EXPECT_EQ(difference(in_nccl_form(m.value()), parsed(text)), "") << entry.path();
  }
}

TEST(NcclRoundTrip, WritesWhatNcclReads) {
  const std::string text = write_nccl_xml(
      parsed("<system version='1'><cpu numaid='0' affinity='ff' host_hash='0xa'><pci "
             "busid='01:00.0' class='0x030200' link_speed='16 GT/s' link_width='16'>"
             "<gpu dev='0' sm='90' rank='0' gdr='1'><c2c bw='450000' "
             "count='1'/></gpu></pci></cpu></system>"));
  EXPECT_EQ(text,
            "<system version=\"1\">\n"
            "  <cpu host_hash=\"0xa\" numaid=\"0\" affinity=\"000000ff\">\n"
            "    <pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
            "link_width=\"16\">\n"
            "      <gpu dev=\"0\" sm=\"90\" rank=\"0\" gdr=\"1\">\n"
            "        <c2c bw=\"450000\" count=\"1\"/>\n"
            "      </gpu>\n"
            "    </pci>\n"
            "  </cpu>\n"
            "</system>\n");
}

}  // namespace
}  // namespace tessera::topology

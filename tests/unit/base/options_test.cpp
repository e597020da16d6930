#include "base/options.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/temporary_folder.h"

namespace rankine {
namespace {

using test::message_of;
using test::TemporaryFolder;
using Texts = std::vector<std::string>;

enum class Precision { f32, bf16 };

struct Settings {
  int64_t steps = 100;
  int tensor = 1;
  double lr = 3e-4;
  float dropout = 0.1F;
  Precision precision = Precision::f32;
  bool overlap = true;
  std::string name;
  std::filesystem::path save;
  uint64_t memory = uint64_t{1} << 31;
  Texts data;
  int64_t seed = 1;
};

OptionTable table_of(Settings& s) {
  OptionTable t;
  t.heading("training");
  t.integer({"steps"}, &s.steps, "optimizer steps", {.least = 1});
  t.real({"lr", "learning-rate"}, &s.lr, "learning rate", {.least = 0, .above_least = true});
  t.real({"dropout"}, &s.dropout, "dropout probability", {.least = 0, .most = 0.9});
  t.integer({"seed"}, &s.seed, "seed of all random numbers");
  t.heading("layout");
  t.integer({"tensor-parallel", "tp", "tensor-model-parallel-size"}, &s.tensor,
            "ranks that share the matrices of each layer", {.least = 1, .most = 64});
  t.choice({"precision"}, &s.precision, {{"f32", Precision::f32}, {"bf16", Precision::bf16}},
           "number format of activations");
  t.flag({"overlap"}, &s.overlap, "communicate beside computing");
  t.heading("files");
  t.text({"run-name"}, &s.name, "name of the run");
  t.path({"save"}, &s.save, "folder of checkpoints");
  t.bytes({"memory"}, &s.memory, "memory of one rank");
  t.texts({"data", "d"}, &s.data, "files or folders to train on", "PATH");
  return t;
}

void parse(Settings& s, const Texts& arguments) {
  OptionTable table = table_of(s);
  parse_options(table, arguments);
}

TEST(Options, ReadsEveryKind) {
  Settings s;
  parse(s, {"--steps",
            "7",
            "--lr=1e-3",
            "--dropout",
            "0.25",
            "--tp",
            "4",
            "--precision",
            "bf16",
            "--no-overlap",
            "--run-name",
            "a b",
            "--save=out put",
            "--memory",
            "1.5GiB",
            "--data",
            "x",
            "y",
            "--data",
            "z",
            "--seed",
            "-3"});
  EXPECT_EQ(s.steps, 7);
  EXPECT_EQ(s.lr, 1e-3);
  EXPECT_EQ(s.dropout, 0.25F);
  EXPECT_EQ(s.tensor, 4);
  EXPECT_EQ(s.precision, Precision::bf16);
  EXPECT_FALSE(s.overlap);
  EXPECT_EQ(s.name, "a b");
  EXPECT_EQ(s.save, "out put");
  EXPECT_EQ(s.memory, uint64_t{3} << 29);
  EXPECT_EQ(s.data, (Texts{"x", "y", "z"}));
  EXPECT_EQ(s.seed, -3);
}

TEST(Options, KeepsDefaultsAndOrigins) {
  Settings s;
  OptionTable table = table_of(s);
  const ParsedOptions parsed = parse_options(table, {"--steps", "5"});
  EXPECT_FALSE(parsed.help);
  EXPECT_EQ(s.lr, 3e-4);
  EXPECT_EQ(table.origin("steps"), OptionOrigin::command_line);
  EXPECT_EQ(table.origin("lr"), OptionOrigin::standard);
}

TEST(Options, AcceptsUnderscoresAliasesAndFlagValues) {
  Settings s;
  parse(s, {"--tensor_model_parallel_size=8", "--learning_rate", "0.5", "--overlap=false", "-d",
            "a_b"});
  EXPECT_EQ(s.tensor, 8);
  EXPECT_EQ(s.lr, 0.5);
  EXPECT_FALSE(s.overlap);
  EXPECT_EQ(s.data, Texts{"a_b"});
}

TEST(Options, EmptyAndBracketedValuesStayAsTheyAre) {
  Settings s;
  s.name = "before";
  parse(s, {"--run-name=", "--save", "[a,b]", "--steps", "2"});
  EXPECT_EQ(s.name, "");
  EXPECT_EQ(s.save, "[a,b]");
  EXPECT_EQ(s.steps, 2);
}

TEST(Options, LastOfRepeatedValuesCounts) {
  Settings s;
  parse(s, {"--steps", "2", "--overlap", "--steps", "3", "--no-overlap"});
  EXPECT_EQ(s.steps, 3);
  EXPECT_FALSE(s.overlap);
}

TEST(Options, CommandLineGoesBeforeFileBeforeDefault) {
  const TemporaryFolder folder;
  const std::string file = folder.write("run.toml", "steps = 11\ntp = 2\ndata = [\"a\", \"b\"]\n");
  Settings s;
  OptionTable table = table_of(s);
  const ParsedOptions parsed =
      parse_options(table, {"--tensor-parallel", "4", "--config", file, "--data", "c"});
  EXPECT_EQ(parsed.config, file);
  EXPECT_EQ(s.steps, 11);
  EXPECT_EQ(s.tensor, 4);
  EXPECT_EQ(s.data, Texts{"c"});
  EXPECT_EQ(table.origin("steps"), OptionOrigin::file);
  EXPECT_EQ(table.origin("data"), OptionOrigin::command_line);
}

TEST(Options, ReportsAllFaultsTogetherAndChangesNothing) {
  const TemporaryFolder folder;
  const std::string file = folder.write("run.toml", "stepz = 1\nlr = 0.5\nmemory = lots\n");
  Settings s;
  const Error error = test::error_of([&] {
    parse(s, {"--config", file, "--tp", "0", "--prescision", "f32", "--precision", "bf61",
              "--steps", "many", "--seed", "5"});
  });
  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_EQ(std::string(error.what()),
            "6 faults in the options:\n"
            "  --prescision: unknown option; did you mean --precision?\n  " +
                file +
                ":3: the value of memory is no number, true or false; texts need quotes, as in "
                "memory = \"...\"\n  " +
                file +
                ":1: stepz: unknown key; did you mean steps?\n"
                "  --steps: 'many' is not an integer; give an integer of at least 1\n"
                "  --tensor-parallel: 0 is out of range; give an integer from 1 to 64 (nearest "
                "legal value 1)\n"
                "  --precision: 'bf61' is none of f32, bf16; did you mean bf16?");
  EXPECT_EQ(s.lr, 3e-4);
  EXPECT_EQ(s.seed, 1);
}

TEST(Options, NamesTheFaultOfOneOption) {
  const std::vector<std::pair<Texts, std::string>> cases{
      {{"--steps"}, "--steps: needs a value"},
      {{"--steps", "--lr", "1"}, "--steps: needs a value"},
      {{"--steps", "1.5"}, "'1.5' is not an integer"},
      {{"--steps", "99999999999999999999"}, "out of range"},
      {{"--steps", ""}, "'' is not an integer"},
      {{"--tp", "65"}, "(nearest legal value 64)"},
      {{"--lr", "0"}, "give a number above 0"},
      {{"--lr", "nan"}, "'nan' is not a finite number"},
      {{"--lr", "1e999"}, "not a finite number"},
      {{"--dropout", "1"}, "(nearest legal value 0.9)"},
      {{"--memory", "5 lightyears"}, "'5 lightyears' is not a size"},
      {{"--overlap=maybe"}, "'maybe' is neither true nor false"},
      {{"stray"}, "'stray': unexpected argument"},
      {{"--config", "absent.toml"}, "cannot open 'absent.toml'"},
      {{"--qqqqqqqqqqqq"}, "--qqqqqqqqqqqq: unknown option; see --help"},
      {{"--step=4"}, "--step: unknown option; did you mean --steps?"},
      {{"-z"}, "-z: unknown option"},
      {{"--data"}, "--data: needs a value"}};
  for (const auto& [arguments, expected] : cases) {
    Settings s;
    const std::string message = message_of([&] { parse(s, arguments); });
    EXPECT_NE(message.find(expected), std::string::npos) << arguments[0] << ": " << message;
    EXPECT_EQ(message.find("faults"), std::string::npos) << message;
  }
}

TEST(Options, UnknownOptionDoesNotBlameItsValue) {
  Settings s;
  const std::string message = message_of([&] { parse(s, {"--stepz", "4", "--tp", "2"}); });
  EXPECT_EQ(message, "--stepz: unknown option; did you mean --steps?");
}

TEST(Options, FileFaultsNameTheLine) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"steps = [1, 2]\n", ":1: steps: a list of 2 values"},
      {"\nsteps = 1\nsteps = 2\n", ":3: steps: given a second time"},
      {"tp = 2\ntensor-parallel = 2\n", ":2: tensor-parallel: given a second time"},
      {"[training]\nsteps = 2\n", ":1: sections are not used"},
      {"steps\n", ":1: not a line of the form"},
      {"config = \"x\"\n", "config: unknown key"}};
  for (const auto& [text, expected] : cases) {
    const std::string file = folder.write("run.toml", text);
    Settings s;
    const std::string message = message_of([&] { parse(s, {"--config", file}); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
}

TEST(Options, HelpWinsOverFaults) {
  Settings s;
  OptionTable table = table_of(s);
  EXPECT_TRUE(parse_options(table, {"--nonsense", "--help", "--steps", "x"}).help);
  EXPECT_TRUE(parse_options(table, {"-h"}).help);
}

TEST(Options, PositionalsInOrder) {
  std::string what;
  std::filesystem::path where;
  int64_t top = 3;
  OptionTable table;
  table.positional("PATH", &where, "checkpoint to show");
  table.positional("NAME", &what, "tensor to show");
  table.integer({"top"}, &top, "how many");
  parse_options(table, {"a/b", "--top", "5", "--", "-x"});
  EXPECT_EQ(where, "a/b");
  EXPECT_EQ(what, "-x");
  EXPECT_EQ(top, 5);
  EXPECT_EQ(message_of([&] { parse_options(table, {"a"}); }), "NAME is missing: tensor to show");
  EXPECT_EQ(message_of([&] {
              parse_options(table, {"a", "b", "c"});
            }),
            "'c': unexpected argument; see --help");
}

TEST(Options, DeclaringTwiceIsABug) {
  int64_t x = 0;
  OptionTable table;
  table.integer({"steps", "s"}, &x, "steps");
  EXPECT_EQ(test::error_of([&] { table.integer({"s"}, &x, "steps"); }).kind(), ErrorKind::internal);
  EXPECT_EQ(test::error_of([&] { table.integer({"help"}, &x, "steps"); }).kind(),
            ErrorKind::internal);
}

TEST(OptionsToml, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  Settings s;
  s.name = "quote \" apostrophe ' hash # comma , \\ tab\t line\n end";
  s.save = "/a b/ünï/你好 😀.txt";
  s.data = {"a#b", "[x]", "", "é,\"ü"};
  s.lr = 0.1 + 0.2;
  s.dropout = 0.3F;
  s.memory = 123456789;
  s.seed = -9007199254740993;
  s.precision = Precision::bf16;
  s.overlap = false;
  const std::string written = to_toml(table_of(s));
  Settings back;
  parse(back, {"--config", folder.write("a b #1.toml", written)});
  EXPECT_EQ(to_toml(table_of(back)), written) << written;
  EXPECT_EQ(back.name, s.name);
  EXPECT_EQ(back.save, s.save);
  EXPECT_EQ(back.data, s.data);
  EXPECT_EQ(back.lr, s.lr);
  EXPECT_EQ(back.dropout, s.dropout);
  EXPECT_EQ(back.memory, s.memory);
  EXPECT_EQ(back.seed, s.seed);
}

TEST(OptionsToml, ShowsGroupsAndOrigins) {
  const TemporaryFolder folder;
  Settings s;
  OptionTable table = table_of(s);
  table.do_not_store("run-name");
  parse_options(table, {"--config", folder.write("c.toml", "lr = 1\n"), "--steps", "9"});
  EXPECT_EQ(to_toml(table),
            "# training\n"
            "steps = 9  # command line\n"
            "lr = 1  # file\n"
            "dropout = 0.1  # default\n"
            "seed = 1  # default\n"
            "\n# layout\n"
            "tensor-parallel = 1  # default\n"
            "precision = \"f32\"  # default\n"
            "overlap = true  # default\n"
            "\n# files\n"
            "save = \"\"  # default\n"
            "memory = \"2GiB\"  # default\n"
            "data = []  # default\n");
}

TEST(OptionsCompare, ListsDifferencesByMeaning) {
  Settings s;
  OptionTable table = table_of(s);
  EXPECT_TRUE(compare(to_toml(table), table).empty());
  EXPECT_TRUE(compare("memory = \"2048MiB\"\nlr = 3.0e-4\ntp = 1\n", table).empty());
  s.steps = 7;
  s.data = {"x"};
  const auto differences =
      compare("steps = 5\nprecision = \"bf16\"\nold-option = 3\nlearning_rate = 0.0003\n", table);
  ASSERT_EQ(differences.size(), 4U);
  EXPECT_EQ(differences[0].name, "steps");
  EXPECT_EQ(differences[0].stored, "5");
  EXPECT_EQ(differences[0].current, "7");
  EXPECT_EQ(differences[1].name, "precision");
  EXPECT_EQ(differences[1].stored, "\"bf16\"");
  EXPECT_EQ(differences[2].name, "data");
  EXPECT_EQ(differences[2].stored, "[]");
  EXPECT_EQ(differences[2].current, "[\"x\"]");
  EXPECT_EQ(differences[3].name, "old-option");
  EXPECT_EQ(differences[3].current, "");
  EXPECT_EQ(test::error_of([&] { compare("steps = \n", table); }).kind(), ErrorKind::data);
  EXPECT_EQ(test::error_of([&] { compare("steps = []\n", table); }).kind(), ErrorKind::data);
}

TEST(OptionsHelp, ShowsGroupsNamesDefaultsAndAliases) {
  Settings s;
  OptionTable table = table_of(s);
  table.text({"note"}, &s.name, std::string(40, 'w') + " " + std::string(40, 'x') + " end");
  const std::string help = help_text(table, "rankine train", "Trains a model.");
  EXPECT_TRUE(
      help.starts_with("usage: rankine train [options]\n\nTrains a model.\n\ntraining:\n"
                       "  --steps N                       optimizer steps (default 100)\n"))
      << help;
  for (const char* part : {"layout:\n", "--precision f32|bf16", "--overlap, --no-overlap",
                           "default 2GiB", "also --tp;", "also --tensor-model-parallel-size)",
                           "--data PATH ...", "also -d", "--config PATH"})
    EXPECT_NE(help.find(part), std::string::npos) << part << '\n' << help;
  size_t start = 0;
  for (size_t end = help.find('\n'); end != std::string::npos; end = help.find('\n', start)) {
    EXPECT_LE(end - start, 100U) << help.substr(start, end - start);
    start = end + 1;
  }
}

}  // namespace
}  // namespace rankine

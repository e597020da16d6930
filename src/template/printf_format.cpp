#include "template/printf_format.h"

#include "template/number_format.h"
#include "template/numbers.h"
#include "template/operators.h"
#include "template/template_object.h"
#include "template/text_units.h"
#include "template/value_text.h"

namespace rankine {
namespace {

constexpr int64_t widest = 1 << 30;

class Printf {
 public:
  Printf(RenderState& state, const MarkedText& format, const TemplateValue& values)
      : state_(state), format_(format), values_(values), reader_(format) {
    if (values.is(ValueKind::list) &&
        (values.as_list().form == ListForm::tuple || values.as_list().form == ListForm::group))
      tuple_ = &values.as_list();
  }

  MarkedText run() {
    const std::string_view text = format_.view();
    while (at_ < text.size()) {
      const size_t sign = std::min(text.find('%', at_), text.size());
      reader_.copy(at_, sign, out_);
      at_ = sign;
      if (at_ < text.size()) field();
    }
    const bool has_items =
        tuple_ == nullptr && (values_.is(ValueKind::dict) || values_.is(ValueKind::list) ||
                              values_.is(ValueKind::undefined));
    if (!named_ && next_ < count() && !has_items)
      state_.fail("not all arguments are used by the format");
    return std::move(out_);
  }

 private:
  size_t count() const { return tuple_ != nullptr ? tuple_->items.size() : 1; }
  char sign() const { return at_ < format_.size() ? format_.text()[at_] : '\0'; }
  const TemplateValue& next() {
    if (named_value_ != nullptr) return *named_value_;
    if (next_ >= count()) state_.fail("the format asks for more than {} arguments", count());
    const TemplateValue& value = tuple_ != nullptr ? tuple_->items[next_] : values_;
    ++next_;
    return value;
  }
  int64_t number() {
    if (sign() == '*') {
      ++at_;
      const TemplateValue& value = next();
      if (!value.is_integral()) state_.fail("'*' in a format needs an integer");
      return value.as_integer();
    }
    int64_t value = 0;
    for (; sign() >= '0' && sign() <= '9'; ++at_)
      value = std::min(widest, value * 10 + (sign() - '0'));
    return value;
  }
  void name() {
    named_value_ = nullptr;
    if (sign() != '(') return;
    const size_t end = format_.text().find(')', at_);
    if (end == std::string::npos) state_.fail("a format with '(' but no ')'");
    if (!values_.is(ValueKind::dict)) state_.fail("a format with names needs a dict");
    const std::string_view key = format_.view().substr(at_ + 1, end - at_ - 1);
    named_value_ = values_.as_dict().find(key);
    if (named_value_ == nullptr) state_.fail("the format's name '{}' is not given", key);
    named_ = true;
    at_ = end + 1;
  }
  void field();
  void put(const TemplateValue& value, FieldFormat& format, uint32_t origin);

  RenderState& state_;
  const MarkedText& format_;
  const TemplateValue& values_;
  MarkedTextReader reader_;
  const TemplateList* tuple_ = nullptr;
  const TemplateValue* named_value_ = nullptr;
  bool named_ = false;
  size_t next_ = 0, at_ = 0;
  MarkedText out_;
};

void Printf::field() {
  const uint32_t origin = reader_.at(at_).origin;
  ++at_;
  name();
  FieldFormat format;
  for (bool flag = true; flag;) {
    switch (sign()) {
      case '-':
        format.align = '<';
        break;
      case '+':
        format.sign = '+';
        break;
      case ' ':
        if (format.sign == '-') format.sign = ' ';
        break;
      case '#':
        format.alternative = true;
        break;
      case '0':
        format.zero = true;
        break;
      default:
        flag = false;
        continue;
    }
    ++at_;
  }
  format.width = number();
  if (format.width < 0) {
    format.align = '<';
    format.width = -std::max(format.width, -widest);
  }
  if (sign() == '.') {
    ++at_;
    format.precision = std::max<int64_t>(number(), 0);
  }
  while (sign() == 'l' || sign() == 'h' || sign() == 'L') ++at_;
  format.type = sign();
  if (format.type == '\0') state_.fail("an incomplete format");
  ++at_;
  if (format.type == '%') return out_.append("%", origin);
  put(next(), format, origin);
}

void Printf::put(const TemplateValue& value, FieldFormat& format, uint32_t origin) {
  const uint32_t from = value.origin() != 0 ? value.origin() : origin;
  MarkedText text;
  switch (format.type) {
    case 's':
    case 'r':
    case 'a':
      text = format.type == 's' ? text_of(state_, value) : shown(state_, value);
      if (format.precision >= 0 && format.precision < static_cast<int64_t>(text.size())) {
        size_t bytes = 0;
        for (int64_t i = 0; i < format.precision && bytes < text.size(); ++i)
          bytes += character_at(text.view(), bytes).bytes;
        text = text.slice(0, bytes);
      }
      format.zero = false;
      break;
    case 'c': {
      std::string character;
      if (value.is_integral() && value.as_integer() >= 0 && value.as_integer() < 0x110000 &&
          (value.as_integer() & ~0x7FF) != 0xD800)
        append_character(character, static_cast<char32_t>(value.as_integer()));
      else if (value.is(ValueKind::text) && character_count(value.as_text().view()) == 1)
        character = value.as_text().text();
      else
        state_.fail("%c needs one character");
      text = MarkedText(character, from);
      break;
    }
    default: {
      need_defined(state_, value);
      if (!value.is_number())
        state_.fail("%{} needs a number, not a '{}'", format.type, type_name(value));
      const bool whole = std::string_view("diuxXo").find(format.type) != std::string_view::npos;
      if (whole && value.is(ValueKind::real)) {
        if (format.type == 'x' || format.type == 'X' || format.type == 'o')
          state_.fail("%{} needs an integer", format.type);
        if (!(std::abs(value.as_real()) < 9e18)) state_.fail("a number that is no 64 bit integer");
      }
      if (!whole && std::string_view("eEfFgG").find(format.type) == std::string_view::npos)
        state_.fail("'%{}' is no format", format.type);
      const int64_t precision = format.precision;
      if (whole) format.precision = -1;
      std::string digits =
          whole ? integer_field(state_,
                                value.is_integral() ? value.as_integer()
                                                    : static_cast<int64_t>(value.as_real()),
                                format)
                : real_field(state_, value.as_real(), format);
      if (whole && precision > 0) {
        const size_t mark = digits[0] >= '0' && digits[0] <= '9' ? 0 : 1;
        const auto wanted = static_cast<size_t>(std::min<int64_t>(precision, 1000));
        if (digits.size() - mark < wanted)
          digits.insert(mark, wanted - (digits.size() - mark), '0');
      }
      text = MarkedText(digits, from);
    }
  }
  if (format.align == '\0') format.align = format.zero ? '=' : '>';
  if (format.zero && format.align == '=') format.fill = "0";
  out_.append(padded_field(state_, std::move(text), format, from));
}

}  // namespace

MarkedText printf_text(RenderState& state, const MarkedText& format, const TemplateValue& values) {
  state.make(format.size());
  return Printf(state, format, values).run();
}

}  // namespace rankine

package hikv.ycsb;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;

/**
 * The format of a record's fields in the value of one key: for each field the length of its name (two bytes), the name,
 * the length of its value (four bytes), the value.
 */
final class Record {
  private final TreeMap<String, byte[]> fields = new TreeMap<>();

  static Record of(byte[] value) {
    Record record = new Record();
    ByteBuffer rest = ByteBuffer.wrap(value);
    while (rest.hasRemaining()) {
      byte[] name = new byte[rest.getShort()];
      rest.get(name);
      byte[] field = new byte[rest.getInt()];
      rest.get(field);
      record.fields.put(new String(name, StandardCharsets.UTF_8), field);
    }
    return record;
  }

  Record with(Map<String, ByteIterator> values) {
    values.forEach((name, value) -> fields.put(name, value.toArray()));
    return this;
  }

  byte[] toValue() {
    int length = 0;
    for (Map.Entry<String, byte[]> field : fields.entrySet()) {
      length += Short.BYTES + field.getKey().getBytes(StandardCharsets.UTF_8).length;
      length += Integer.BYTES + field.getValue().length;
    }
    ByteBuffer value = ByteBuffer.allocate(length);
    fields.forEach((fieldName, field) -> {
      byte[] name = fieldName.getBytes(StandardCharsets.UTF_8);
      value.putShort((short) name.length).put(name).putInt(field.length).put(field);
    });
    return value.array();
  }

  /** Returns the wanted fields, or all if {@code wanted} is null. */
  void copyTo(Map<String, ByteIterator> result, Set<String> wanted) {
    fields.forEach((name, field) -> {
      if (wanted == null || wanted.contains(name)) {
        result.put(name, new ByteArrayByteIterator(field));
      }
    });
  }
}

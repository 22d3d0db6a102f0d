package hikv.ycsb;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * YCSB's operations on {@code hikv serve}, at {@code hikv.host} and {@code hikv.port}.
 *
 * <p>A record is one key, {@code table:key}, whose value contains all fields, so one request reads or inserts a record,
 * and a scan is one RANGE. An update of some fields reads the record and replaces it by CAS, and repeats that if
 * another client was faster.
 *
 * <p>The keys of a scan must ascend, begin at or after its start, and belong to the table; anything else is
 * {@code UNEXPECTED_STATE}. In workloads with {@code dataintegrity=true}, YCSB itself verifies the values.
 */
public final class HikvClient extends DB {
  private static final byte[] GET = ascii("GET");
  private static final byte[] SET = ascii("SET");
  private static final byte[] CAS = ascii("CAS");
  private static final byte[] DEL = ascii("DEL");
  private static final byte[] RANGE = ascii("RANGE");
  private static final byte[] LIMIT = ascii("LIMIT");

  private Connection connection;

  @Override
  public void init() throws DBException {
    Properties properties = getProperties();
    String host = properties.getProperty("hikv.host", "127.0.0.1");
    int port = Integer.parseInt(properties.getProperty("hikv.port", "6379"));
    try {
      connection = new Connection(host, port);
    } catch (IOException error) {
      throw new DBException(error);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      connection.close();
    } catch (IOException error) {
      throw new DBException(error);
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return tried(() -> {
      byte[] value = (byte[]) connection.call(GET, name(table, key));
      if (value == null) {
        return Status.NOT_FOUND;
      }
      Record.of(value).copyTo(result, fields);
      return Status.OK;
    });
  }

  @Override
  public Status scan(String table, String startKey, int count, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    return tried(() -> {
      byte[] last = name(table, "");
      last[last.length - 1]++;
      byte[] previous = name(table, startKey);
      List<?> items = (List<?>) connection.call(RANGE, previous, last, LIMIT, ascii(Integer.toString(count)));
      for (int i = 0; i < items.size(); i += 2) {
        byte[] key = (byte[]) items.get(i);
        int order = Arrays.compareUnsigned(previous, key);
        if (order > 0 || order == 0 && i > 0 || Arrays.compareUnsigned(key, last) >= 0) {
          return Status.UNEXPECTED_STATE;
        }
        HashMap<String, ByteIterator> record = new HashMap<>();
        Record.of((byte[]) items.get(i + 1)).copyTo(record, fields);
        result.add(record);
        previous = key;
      }
      return items.isEmpty() ? Status.NOT_FOUND : Status.OK;
    });
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    // The iterator of a value can be read only once.
    byte[] changed = new Record().with(values).toValue();
    return tried(() -> {
      while (true) {
        byte[] old = (byte[]) connection.call(GET, name(table, key));
        if (old == null) {
          return Status.NOT_FOUND;
        }
        Map<String, ByteIterator> fields = new HashMap<>();
        Record.of(changed).copyTo(fields, null);
        byte[] next = Record.of(old).with(fields).toValue();
        if ((Long) connection.call(CAS, name(table, key), old, next) == 1) {
          return Status.OK;
        }
      }
    });
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    byte[] value = new Record().with(values).toValue();
    return tried(() -> "OK".equals(connection.call(SET, name(table, key), value)) ? Status.OK : Status.ERROR);
  }

  @Override
  public Status delete(String table, String key) {
    return tried(() -> (Long) connection.call(DEL, name(table, key)) == 1 ? Status.OK : Status.NOT_FOUND);
  }

  private interface Work {
    Status run() throws IOException;
  }

  private static Status tried(Work work) {
    try {
      return work.run();
    } catch (IOException error) {
      System.err.println("hikv: " + error.getMessage());
      return Status.ERROR;
    }
  }

  private static byte[] name(String table, String key) {
    return (table + ':' + key).getBytes(StandardCharsets.UTF_8);
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }
}

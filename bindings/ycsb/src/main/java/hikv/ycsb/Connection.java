package hikv.ycsb;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A connection that uses RESP2: a request, then its reply. */
final class Connection implements Closeable {
  private final Socket socket;
  private final BufferedInputStream in;
  private final BufferedOutputStream out;

  Connection(String host, int port) throws IOException {
    socket = new Socket(host, port);
    socket.setTcpNoDelay(true);
    in = new BufferedInputStream(socket.getInputStream(), 64 << 10);
    out = new BufferedOutputStream(socket.getOutputStream(), 64 << 10);
  }

  /**
   * Sends a request and returns the reply: a {@code byte[]}, a {@code Long}, a {@code String} for a status, a {@code
   * List} of replies, or null.
   *
   * @throws IOException if the server refuses the request or closes the connection
   */
  Object call(byte[]... arguments) throws IOException {
    line("*" + arguments.length);
    for (byte[] argument : arguments) {
      line("$" + argument.length);
      out.write(argument);
      out.write('\r');
      out.write('\n');
    }
    out.flush();
    return reply();
  }

  private void line(String text) throws IOException {
    out.write(text.getBytes(StandardCharsets.US_ASCII));
    out.write('\r');
    out.write('\n');
  }

  private Object reply() throws IOException {
    String line = readLine();
    String text = line.substring(1);
    switch (line.charAt(0)) {
      case '+':
        return text;
      case ':':
        return Long.valueOf(text);
      case '$':
        return bulk(Integer.parseInt(text));
      case '*':
        return array(Integer.parseInt(text));
      case '-':
        throw new IOException("the server refuses: " + text);
      default:
        throw new IOException("not a reply: " + line);
    }
  }

  private byte[] bulk(int length) throws IOException {
    if (length < 0) {
      return null;
    }
    byte[] bytes = in.readNBytes(length);
    if (bytes.length < length || in.read() != '\r' || in.read() != '\n') {
      throw new EOFException("a value breaks off");
    }
    return bytes;
  }

  private List<Object> array(int length) throws IOException {
    List<Object> replies = new ArrayList<>(Math.max(length, 0));
    for (int i = 0; i < length; i++) {
      replies.add(reply());
    }
    return replies;
  }

  private String readLine() throws IOException {
    StringBuilder line = new StringBuilder();
    for (int next = in.read(); next != '\r'; next = in.read()) {
      if (next < 0) {
        throw new EOFException("the server went away");
      }
      line.append((char) next);
    }
    in.read();
    return line.toString();
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}

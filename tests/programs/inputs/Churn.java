// Work for the JVM's own malloc: compiler threads, direct buffers, zlib, many short threads.
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import java.util.zip.CRC32;
import java.util.zip.GZIPOutputStream;

public class Churn {
    static long compress(int seed) {
        try {
            var bytes = new ByteArrayOutputStream();
            try (var zip = new GZIPOutputStream(bytes)) {
                for (int i = 0; i < 20000; i++) zip.write((seed * 31 + i * i) & 0xff);
            }
            var direct = ByteBuffer.allocateDirect(bytes.size());
            direct.put(bytes.toByteArray()).flip();
            var crc = new CRC32();
            crc.update(direct);
            return crc.getValue();
        } catch (java.io.IOException e) {
            throw new RuntimeException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        long sum = 0;
        try (var wave = new java.net.URLClassLoader(new java.net.URL[0])) {
            sum += wave.getURLs().length;
        }
        var pool = Executors.newFixedThreadPool(8);
        var jobs = IntStream.range(0, 400).mapToObj(i -> pool.submit(() -> compress(i))).toList();
        for (var job : jobs) sum = sum * 33 + job.get();
        pool.shutdown();
        var threads = IntStream.range(0, 200).mapToObj(i -> new Thread(() -> compress(i))).toList();
        for (var thread : threads) thread.start();
        for (var thread : threads) thread.join();
        var tree = new TreeMap<Integer, String>();
        for (int i = 0; i < 300000; i++) tree.put((i * 7919) % 100003, "value " + i);
        System.out.println(sum + " " + tree.size() + " " + tree.get(777));
    }
}

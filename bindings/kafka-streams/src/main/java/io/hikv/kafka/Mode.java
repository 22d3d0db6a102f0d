package io.hikv.kafka;

import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStore;

/** The way in which Kafka Streams commits state stores. */
enum Mode {
    /** Each commit reaches the state stores. A restored tail may overwrite what is newer than the offsets. */
    AT_LEAST_ONCE,
    /** Only restoring and a clean close reach them. Nothing newer than the offsets may be restored upon. */
    EXACTLY_ONCE,
    /** Each transaction reaches them, and Kafka Streams limits the writes that wait. Kafka 4.4.0 and later. */
    TRANSACTIONAL;

    private static final String SETTING = "enable.transactional.statestores";

    /** Returns the mode of an application. */
    static Mode of(Map<String, Object> configs) {
        if (!StreamsConfig.EXACTLY_ONCE_V2.equals(configs.get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG))) {
            return AT_LEAST_ONCE;
        }
        boolean isSet = "true".equals(String.valueOf(configs.get(SETTING)));
        return isSet && hasTransactions() ? TRANSACTIONAL : EXACTLY_ONCE;
    }

    /** Returns true if this Kafka Streams knows the setting; earlier versions ignore it. */
    static boolean hasTransactions() {
        return Arrays.stream(StateStore.class.getMethods())
            .anyMatch(method -> method.getName().equals("approximateNumUncommittedBytes"));
    }
}

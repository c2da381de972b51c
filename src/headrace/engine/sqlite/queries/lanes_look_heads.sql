-- What has to be known of lanes to let arrivals in, for many lanes at once: the width and the used
-- places (NULL: no row, so none are), who waits first, and whether that one beats the ready job that
-- would go back first. A pinned ready job (a retry that keeps its place) never goes back. ?1 is a
-- JSON array of [queue, lane].
SELECT place.key, lane.width, lane.used, waiting.seq,
       coalesce(waiting.priority > head.priority
                OR (waiting.priority = head.priority AND waiting.seq < head.seq), 0)
FROM json_each(?1) AS place
LEFT JOIN lane ON lane.queue = json_extract(place.value, '$[0]')
              AND lane.lane = json_extract(place.value, '$[1]')
LEFT JOIN job AS waiting ON waiting.seq = (
    SELECT job.seq FROM job
    WHERE job.queue = json_extract(place.value, '$[0]')
      AND job.lane = json_extract(place.value, '$[1]') AND job.state = 1
    ORDER BY job.priority DESC, job.seq
    LIMIT 1
)
LEFT JOIN job AS head ON head.seq = (
    SELECT job.seq FROM job
    WHERE job.queue = json_extract(place.value, '$[0]')
      AND job.lane = json_extract(place.value, '$[1]')
      AND job.state = 2 AND job.pinned = 0 AND job.lane IS NOT NULL
    ORDER BY job.priority, job.seq DESC
    LIMIT 1
);

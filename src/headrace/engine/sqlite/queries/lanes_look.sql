-- What has to be known of lanes to hand places on, for many lanes at once: the width and the used
-- places, and who waits first. ?1 is a JSON array of [queue, lane].
SELECT place.key, lane.width, lane.used, (
    SELECT job.seq FROM job
    WHERE job.queue = json_extract(place.value, '$[0]')
      AND job.lane = json_extract(place.value, '$[1]') AND job.state = 1
    ORDER BY job.priority DESC, job.seq
    LIMIT 1
)
FROM json_each(?1) AS place
CROSS JOIN lane ON lane.queue = json_extract(place.value, '$[0]')
               AND lane.lane = json_extract(place.value, '$[1]');

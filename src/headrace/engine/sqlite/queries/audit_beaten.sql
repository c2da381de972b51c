-- Lanes where a waiting job beats an unpinned ready one: it should have taken its place.
SELECT DISTINCT head.queue, head.lane
FROM job AS head
JOIN job AS waiting ON waiting.queue = head.queue AND waiting.lane = head.lane
WHERE head.state = 2 AND head.pinned = 0 AND head.lane IS NOT NULL AND waiting.state = 1
  AND waiting.seq = (
      SELECT best.seq FROM job AS best
      WHERE best.queue = head.queue AND best.lane = head.lane AND best.state = 1
      ORDER BY best.priority DESC, best.seq LIMIT 1
  )
  AND (waiting.priority > head.priority
       OR (waiting.priority = head.priority AND waiting.seq < head.seq));

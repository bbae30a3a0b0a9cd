-- How many group hours have their largest (k = 1), second and third largest slowdown in each bucket: 256 buckets an octave, bucket 0
-- begins at 1.
-- Portable SQL: DuckDB, DataFusion, Spark. `hours` is the hours table.
WITH usable AS (
    SELECT hour, raid, drive, CAST(latency_us AS DOUBLE) AS latency
    FROM hours
    WHERE ios >= 1 AND latency_us > 0 AND latency_us < CAST('Infinity' AS DOUBLE)
),
middles AS (
    SELECT hour, raid, median(latency) AS middle, count(*) AS width
    FROM usable
    GROUP BY hour, raid
    HAVING count(*) >= 3
),
slowdowns AS (
    SELECT usable.hour, usable.raid, usable.drive, usable.latency / middles.middle AS s
    FROM usable
    JOIN middles ON usable.hour = middles.hour AND usable.raid = middles.raid
),
ranked AS (
    SELECT s, row_number() OVER (PARTITION BY hour, raid ORDER BY s DESC) AS k
    FROM slowdowns
),
octaves AS (
    SELECT k, s, floor(log2(s)) AS octave
    FROM ranked
    WHERE k <= 3
),
buckets AS (
    SELECT k, CAST(octave * 256 + floor((s / power(CAST(2 AS DOUBLE), octave) - 1) * 256) AS BIGINT) AS bucket
    FROM octaves
)
SELECT k, bucket, count(*) AS raid_hours
FROM buckets
GROUP BY k, bucket
ORDER BY k, bucket

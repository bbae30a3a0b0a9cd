-- Drive hours and group hours, and how many of them are slow: the counts of table 1.
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
tails AS (
    SELECT hour, raid, max(s) AS t1
    FROM slowdowns
    GROUP BY hour, raid
)
SELECT
    (SELECT count(*) FROM slowdowns) AS drive_hours,
    (SELECT count(*) FROM slowdowns WHERE s >= 2) AS slow_drive_hours,
    (SELECT count(*) FROM tails) AS raid_hours,
    (SELECT count(*) FROM tails WHERE t1 >= 2) AS tail_hours

-- How many slow intervals lasted each number of hours: hours of a drive that follow one another, an hour without a record ends one.
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
places AS (
    SELECT raid, drive, hour, row_number() OVER (PARTITION BY raid, drive ORDER BY hour) AS place
    FROM slowdowns
    WHERE s >= 2
),
intervals AS (
    SELECT raid, drive, hour - place AS began, count(*) AS length
    FROM places
    GROUP BY raid, drive, hour - place
)
SELECT length, count(*) AS intervals
FROM intervals
GROUP BY length
ORDER BY length

/** The last ten minutes of a queue, as lines. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import type { Point } from '../views.ts'
import { clock, duration, rate, short } from './format.ts'
import { pointsOf, useLive } from './live.ts'
import { Empty } from './parts.tsx'

type Columns = readonly (readonly [label: string, color: string, column: 1 | 2 | 3 | 4 | 5])[]

interface LinesProps {
  title: string
  points: readonly Point[]
  columns: Columns
  shown: (value: number) => string
}

/** A colour as a canvas takes it: of the scheme that is shown now. */
function colorOf(name: string): string {
  const probe = document.createElement('i')
  probe.style.color = `var(${name})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** @param seconds since 1970 */
const timeOf = (seconds: number): string => clock(seconds * 1000).slice(11, 19)

/** What the legend says: the value under the pointer, and without one the newest. @param index null: there is no pointer */
function told(
  { data }: uPlot,
  series: number,
  value: number | null,
  index: number | null,
  shown: (value: number) => string,
): string {
  const known = index === null ? data[series]?.at(-1) : value
  return known == null ? '–' : shown(known)
}

const Lines = ({ title, points, columns, shown }: LinesProps) => {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | undefined>(undefined)
  const data = [points.map(([at]) => at / 1000), ...columns.map(([, , column]) => points.map((point) => point[column]))]
  // Made once; the data follows below.
  useEffect(() => {
    const { current } = place
    if (current === null) return
    const axis = {
      stroke: colorOf('--mute'),
      grid: { stroke: colorOf('--line'), width: 1 },
      ticks: { show: false },
      font: '12px system-ui',
    }
    const made = new uPlot(
      {
        width: current.clientWidth,
        height: 180,
        cursor: { y: false },
        legend: { show: true },
        scales: { y: { range: (_, least, most) => [Math.min(0, least), most <= 0 ? 1 : most * 1.1] } },
        axes: [
          { ...axis, values: (_, all) => all.map(timeOf) },
          { ...axis, size: 60, values: (_, all) => all.map(shown) },
        ],
        series: [
          { label: 'at', value: (plot, at: number | null, _, index) => told(plot, 0, at, index, timeOf) },
          ...columns.map(([label, color]) => ({
            ...{ label, stroke: colorOf(color), width: 2, points: { show: false } },
            value: (plot: uPlot, value: number | null, series: number, index: number | null) =>
              told(plot, series, value, index, shown),
          })),
        ],
      },
      data as uPlot.AlignedData,
      current,
    )
    plot.current = made
    const resized = new ResizeObserver(() => made.setSize({ width: current.clientWidth, height: 180 }))
    resized.observe(current)
    return () => {
      resized.disconnect()
      made.destroy()
    }
  }, [])
  useEffect(() => plot.current?.setData(data as uPlot.AlignedData))
  return (
    <section class="card chart" aria-label={title}>
      <h2>{title}</h2>
      <div ref={place} />
    </section>
  )
}

export const Charts = ({ store, queue }: { store: string; queue: string }) => {
  useLive()
  const points = pointsOf(store, queue)
  if (points.length < 2) return <Empty>The lines begin with the second look at the store …</Empty>
  return (
    <div class="charts" key={colorOf('--text')}>
      <Lines title="Waiting jobs" points={points} columns={[['waiting', '--accent', 1]]} shown={short} />
      <Lines
        title="Jobs a second"
        points={points}
        columns={[
          ['in', '--blue', 2],
          ['done', '--accent', 3],
          ['failed', '--alarm', 4],
        ]}
        shown={rate}
      />
      <Lines
        title="Wait, p95 of 5 minutes"
        points={points}
        columns={[['p95', '--warn', 5]]}
        shown={(ms) => (ms === 0 ? '0' : duration(ms))}
      />
    </div>
  )
}

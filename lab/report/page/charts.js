/* Draws the line charts with uPlot, in the page's colours, and again when the colour scheme or the width changes. */
;(() => {
  const charts = JSON.parse(document.getElementById('lines').textContent)
  const report = document.getElementById('report').textContent
  const record = document.getElementById('record')
  record.href = URL.createObjectURL(new Blob([report], { type: 'application/json' }))

  const HEIGHT = 260
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]]
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

  /** Variants of ours are drawn solid, the others dashed, so that colour alone tells nothing. */
  function looks(series) {
    const counts = { ours: 0, plain: 0, rival: 0, ceiling: 0 }
    return series.map(({ kind }) => {
      const at = counts[kind]++
      const own = kind === 'ours'
      return {
        stroke:
          style(`--${own ? 'ours' : kind === 'ceiling' ? 'ceiling' : 'other'}-${(at % 4) + 1}`) || style(`--${kind}`),
        width: own ? 2.5 : 1.75,
        dash: own ? DASHES[at < 4 ? 0 : 1] : DASHES[1 + (at % 3)],
      }
    })
  }

  function short(value, unit) {
    if (value === null || value === undefined) return ''
    const digits = (each) => String(Number(each.toPrecision(3)))
    if (unit === 'percentile') return `${Number(((1 - 1 / value) * 100).toPrecision(4))} %`
    if (unit === 'share') return `${digits(value * 100)} %`
    if (unit === 'bytes') {
      for (const [size, name] of [
        [2 ** 30, 'GiB'],
        [2 ** 20, 'MiB'],
        [2 ** 10, 'KiB'],
      ])
        if (value >= size) return `${digits(value / size)} ${name}`
      return `${digits(value)} B`
    }
    const time = unit === 'ms' ? value : unit === 's' ? value * 1000 : undefined
    if (time !== undefined)
      return time >= 120000
        ? `${digits(time / 60000)} min`
        : time >= 1000 || unit === 's'
          ? `${digits(time / 1000)} s`
          : `${digits(time)} ms`
    if (Math.abs(value) >= 1e6) return `${digits(value / 1e6)}M`
    if (Math.abs(value) >= 1e4) return `${digits(value / 1e3)}k`
    return digits(value)
  }

  /** Series with moments of their own, on one axis. */
  function aligned(series) {
    return uPlot.join(series.map(({ points }) => [points.map(([x]) => x), points.map(([, y]) => y)]))
  }

  /** On a logarithmic axis, 0 has no place. */
  const positive = (values, log) => (log ? values.map((value) => (value > 0 ? value : null)) : values)

  /** 0 %, 50 %, 75 %, 90 %, 95 %, 99 %, 99.9 %, 99.99 %. */
  const PERCENTILES = [1, 2, 4, 10, 20, 100, 1000, 10000]

  /** Of a logarithmic axis, only the powers of ten have room. */
  function isNamed({ log, unit }, value) {
    if (!log || unit === 'percentile') return true
    return Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9
  }

  function draw(id, chart) {
    const place = document.getElementById(id)
    const narrow = place.clientWidth < 480
    const all = looks(chart.series)
    const [xs, ...ys] = aligned(chart.series)
    const axis = (which, extra) => ({
      stroke: style('--muted'),
      font: `12px ${style('--sans')}`,
      grid: {
        stroke: style('--rule'),
        width: 1,
        filter: (_, splits) => splits.map((value) => (isNamed(which, value) ? value : null)),
      },
      ...(which.unit === 'percentile' ? { splits: () => PERCENTILES, filter: (_, splits) => splits } : {}),
      ticks: { show: false },
      values: (_, splits) => splits.map((value) => (isNamed(which, value) ? short(value, which.unit) : '')),
      ...extra,
    })
    const scale = (which) => (which.log ? { distr: 3, log: 10 } : {})
    const marks = chart.marks ?? []
    const plot = new uPlot(
      {
        width: place.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false } },
        scales: {
          x: { time: false, ...scale(chart.x) },
          y: {
            ...scale(chart.y),
            ...(chart.y.log ? {} : { range: (_, low, high) => [Math.min(0, low), high * 1.05 || 1] }),
          },
        },
        axes: [
          axis(chart.x, {
            label: chart.x.label,
            labelSize: 20,
            labelFont: `12px ${style('--sans')}`,
            size: 30,
            space: narrow ? 60 : 80,
          }),
          axis(chart.y, { size: 58, space: 36 }),
        ],
        series: [
          {},
          ...chart.series.map((series, at) => ({
            label: series.title,
            ...all[at],
            spanGaps: true,
            points: { show: series.points.length < 12, size: 6, fill: all[at].stroke },
          })),
        ],
        hooks: {
          draw: [
            (self) => {
              const { ctx, bbox } = self
              ctx.save()
              ctx.strokeStyle = style('--falls')
              ctx.setLineDash([4, 4])
              ctx.lineWidth = devicePixelRatio
              for (const { x } of marks) {
                const left = Math.round(self.valToPos(x, 'x', true))
                ctx.beginPath()
                ctx.moveTo(left, bbox.top)
                ctx.lineTo(left, bbox.top + bbox.height)
                ctx.stroke()
              }
              ctx.restore()
            },
          ],
          setCursor: [(self) => tip(self, place, chart, all)],
        },
      },
      [positive(xs, chart.x.log), ...ys.map((values) => positive(values, chart.y.log))],
      place,
    )
    const legend = document.querySelector(`.legend[data-for="${id}"]`)
    for (const [at, mark] of [...legend.querySelectorAll('.line')].entries()) {
      mark.style.borderTop = `${all[at].width + 0.5}px ${all[at].dash.length === 0 ? 'solid' : all[at].dash[0] < 4 ? 'dotted' : 'dashed'} ${all[at].stroke}`
    }
    return plot
  }

  /** The figures under the pointer. */
  function tip(plot, place, chart, all) {
    let box = place.querySelector('.tip')
    if (box === null) {
      box = document.createElement('div')
      box.className = 'tip'
      place.append(box)
    }
    const { idx, left } = plot.cursor
    if (idx === null || idx === undefined || left < 0) {
      box.hidden = true
      return
    }
    box.hidden = false
    box.replaceChildren()
    const head = document.createElement('b')
    head.textContent = short(plot.data[0][idx], chart.x.unit)
    box.append(head)
    for (const [at, series] of chart.series.entries()) {
      let from = idx
      while (from > 0 && (plot.data[at + 1][from] === null || plot.data[at + 1][from] === undefined)) from--
      const value = plot.data[at + 1][from]
      if (value === null || value === undefined) continue
      const line = document.createElement('div')
      const dot = document.createElement('i')
      dot.style.background = all[at].stroke
      line.append(dot, `${series.title}: ${short(value, chart.y.unit)}`)
      box.append(line)
    }
    const middle = left > plot.over.clientWidth / 2
    box.style.left = middle ? 'auto' : `${left + 76}px`
    box.style.right = middle ? `${plot.over.clientWidth - left + 16}px` : 'auto'
  }

  // A phone shows the charts, and the figures to those who ask for them.
  if (matchMedia('(max-width: 46rem)').matches) {
    for (const table of document.querySelectorAll('details.drawn')) table.open = false
  }

  let plots = []
  let width = 0
  function all() {
    for (const plot of plots) plot.destroy()
    for (const place of document.querySelectorAll('.plot')) place.replaceChildren()
    plots = Object.entries(charts).map(([id, chart]) => draw(id, chart))
    width = document.documentElement.clientWidth
  }
  all()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', all)
  addEventListener('resize', () => {
    // Phones resize when their address bar goes.
    if (document.documentElement.clientWidth !== width) all()
  })
})()

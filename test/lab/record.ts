/** A small recorded run, with the kinds of figures that a report may have, and texts that would break a careless page. */
import type { Report } from '../../lab/report/model.ts'

export const HOSTILE = `</script><img src=x onerror="alert('x')"> & "quoted"`

export const RECORD: Report = {
  format: 1,
  at: '2026-03-01T12:34:56.000Z',
  seconds: 75,
  size: 'usual',
  command: 'npm run lab',
  machine: {
    ...{ node: 'v24.0.0', sqlite: '3.50.0', cpu: 'A processor', cores: 2, load: 0.1, memory: '1 of 2 GiB free' },
    ...{
      system: 'Linux 6.1',
      filesystem: 'ext4 on /dev/sda',
      fdatasync: 123.4,
      rivals: '',
      generator: 'wrk, 1 thread',
    },
  },
  versions: { Node: '24.0.0', [HOSTILE]: '1.0' },
  chapters: [
    {
      ...{ id: 'E1', title: HOSTILE, short: 'Writes', question: 'What is lost?', seconds: 60, setUp: [HOSTILE] },
      published: [
        { title: 'Published', head: ['variant', 'requests/s'], rows: [['insert first', '1,269']], note: HOSTILE },
      ],
      commands: ['npm ci && npm run lab -- --only E1'],
      failures: ['nginx: it is not installed'],
      findings: [
        { verdict: 'falls', figure: '3 lost', text: HOSTILE, part: 'rates' },
        { verdict: 'holds', figure: '0 lost', text: 'of 1,000', part: 'rates' },
        { verdict: 'missed', figure: '195/s', text: 'of 200/s', part: 'rates' },
      ],
      parts: [
        {
          ...{ id: 'rates', title: '64 connections', about: HOSTILE, notes: [HOSTILE] },
          columns: [
            { key: 'rate', label: 'requests/s', unit: 'count', better: 'more' },
            { key: 'wait', label: 'wait', unit: 'ms', better: 'less' },
            { key: 'lost', label: 'lost', unit: 'count' },
          ],
          rows: [
            {
              ...{ variant: 'insert', title: HOSTILE, kind: 'plain', bars: [] },
              figures: { rate: 1234.5, wait: null, lost: 3 },
              published: { rate: 1269 },
            },
            {
              ...{ variant: 'sqlite', title: 'Millpond on SQLite', kind: 'ours' },
              figures: { rate: 5678, wait: 12.34, lost: 0 },
              bars: [
                { text: '≤ 0 lost', got: '0 lost', cleared: true, near: false },
                { text: '≤ 10 ms p95', got: '12.3 ms p95', cleared: false, near: false },
              ],
            },
            { variant: 'none', title: 'Not there', kind: 'plain', figures: {}, bars: [], skipped: HOSTILE },
          ],
          charts: [
            { kind: 'bars', title: 'Requests/s', column: 'rate' },
            {
              kind: 'lines',
              title: HOSTILE,
              summary: HOSTILE,
              x: { label: 'seconds', unit: 's' },
              y: { label: 'jobs', unit: 'count' },
              series: [
                {
                  title: 'Millpond',
                  kind: 'ours',
                  points: [
                    [0, 1],
                    [1, 2],
                  ],
                },
                { title: 'plain', kind: 'plain', points: [[0.5, 3]] },
              ],
              marks: [{ x: 0.6, label: 'kill -9' }],
            },
          ],
        },
      ],
    },
  ],
}

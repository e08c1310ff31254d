import { interleavings } from './suite.ts'

interleavings('sqlite', [])

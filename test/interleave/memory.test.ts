import { interleavings } from './suite.ts'

interleavings('memory', [])

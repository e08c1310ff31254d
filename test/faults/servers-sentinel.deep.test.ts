import './servers-sentinel.test.ts'

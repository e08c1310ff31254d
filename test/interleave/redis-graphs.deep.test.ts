import './redis-graphs.test.ts'

import './redis.test.ts'

import './redis-configure.test.ts'

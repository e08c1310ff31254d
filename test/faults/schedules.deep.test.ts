import './schedules.test.ts'

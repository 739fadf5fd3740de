export { Deployment, type DeploymentOptions } from './deployment.ts';
export { asPage } from './page.ts';
export { sections } from './promises/index.ts';
export { asJson, asText } from './report.ts';
export { run, runCheck, type Result } from './run.ts';

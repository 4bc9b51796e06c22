/** The one component that runs in each environment of this benchmark, as everybody who looks at it finds it. */
export const COMPONENT = "web";
export const VERSION = "1.4.0";
export const REPLICAS = 2;

/** Where a component is asked, by the place of its environment among the others. */
export function componentUrls(endpointsUrl: string, place: number): { healthUrl: string; versionUrl: string } {
  return { healthUrl: `${endpointsUrl}/${place}/health`, versionUrl: `${endpointsUrl}/${place}/version` };
}

// Starts the page that shows the OpenAPI document.

// The page fills a path such as `a/b` into a URL as one segment, `a%2Fb`. Keys and nodes have slashes between their names.
function withSlashes(request) {
  const [path, ...query] = request.url.split("?");
  request.url = [path.replaceAll(/%2f/gi, "/"), ...query].join("?");
  return request;
}

window.onload = () => {
  window.ui = SwaggerUIBundle({
    dom_id: "#swagger-ui",
    // Relative, so that the document is found below any base path. Operations of HEAD are left out, as they repeat those of GET.
    url: "../openapi.json?head=no",
    deepLinking: true,
    layout: "StandaloneLayout",
    presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
    plugins: [SwaggerUIBundle.plugins.DownloadUrl],
    requestInterceptor: withSlashes,
    // No requests to a validator on the internet.
    validatorUrl: "none",
  });
};

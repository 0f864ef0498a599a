package reports

import (
	"bytes"
	"fmt"
	"html/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// explainer renders a scenario's explanation. Raw HTML is left out (goldmark's default), and so are pictures: a report asks
// the network for nothing.
var explainer = goldmark.New(
	goldmark.WithExtensions(extension.Table),
	goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(withinPage{}, 100))),
)

// explainsTitle heads the scenario's explanation: of what is wrong, or of what holds.
func explainsTitle(r *Result) string {
	if r.Expected == "violation" {
		return "Why, and what fixes it"
	}
	return "What this run looks at"
}

// markdown renders Markdown as a part of a page; "" gives "".
func markdown(source string) (template.HTML, error) {
	if source == "" {
		return "", nil
	}
	var b bytes.Buffer
	if err := explainer.Convert([]byte(cleanLines(source)), &b); err != nil {
		return "", fmt.Errorf("reports: rendering the scenario's explanation: %w", err)
	}
	return template.HTML(b.String()), nil
}

// withinPage makes headings fit below those of the page and puts a picture's text in its place.
type withinPage struct{}

func (withinPage) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var images []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Heading:
			if entering {
				n.Level = min(n.Level+2, 6)
			}
		case *ast.Image:
			if entering {
				images = append(images, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, image := range images {
		parent := image.Parent()
		for child := image.FirstChild(); child != nil; {
			next := child.NextSibling()
			parent.InsertBefore(parent, image, child)
			child = next
		}
		parent.RemoveChild(parent, image)
	}
}
